"""``torch.nn.utils``: clipping, parameters as one vector, sequences of several lengths, computed parameters."""

from fad.eager.nn.utils import parametrizations, parametrize, rnn
from fad.eager.nn.utils.gradients import (
    clip_grad_norm_,
    clip_grad_value_,
    parameters_to_vector,
    vector_to_parameters,
)
from fad.eager.nn.utils.parametrizations import (
    remove_spectral_norm,
    remove_weight_norm,
)
from fad.eager.nn.utils.parametrizations import (
    spectral_norm_by_name as spectral_norm,
)
from fad.eager.nn.utils.parametrizations import (
    weight_norm_by_name as weight_norm,
)

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "parametrizations", "parametrize",
    "remove_spectral_norm", "remove_weight_norm", "rnn", "spectral_norm", "vector_to_parameters", "weight_norm",
]  # fmt: skip
