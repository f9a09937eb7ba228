"""``torch.autograd`` on fad's engine: gradients without ``backward()``, functions with rules of their own, checks."""

from fad import profiler
from fad.eager.autograd import functional, graph
from fad.eager.autograd.anomaly import detect_anomaly, set_detect_anomaly
from fad.eager.autograd.function import Function
from fad.eager.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from fad.eager.autograd.gradients import backward, grad
from fad.eager.core.mode import enable_grad, no_grad, set_grad_enabled
from fad.eager.tensor import Tensor
from fad.eager.unsupported import explain_missing


def Variable(tensor: Tensor, requires_grad: bool = False) -> Tensor:
    """Return the tensor itself, as PyTorch has done since tensors carry their own history."""
    return tensor.requires_grad_() if requires_grad else tensor


__all__ = [
    "Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "functional", "grad",
    "gradcheck", "gradgradcheck", "graph", "no_grad", "profiler", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip

__getattr__ = explain_missing("torch.autograd", globals())
