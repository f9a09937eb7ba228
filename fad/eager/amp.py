"""``torch.amp``: what programs write for mixed precision on a GPU. In host memory computations keep their precision."""

from __future__ import annotations

import contextlib
from typing import Any

from fad.eager.unsupported import PRECISION, explain_missing


class autocast(contextlib.ContextDecorator):
    """Do nothing, around what would be mixed precision on a GPU: there is none here.

    Raises ValueError for the host's own, ``autocast("cpu")``, unless ``enabled=False``: what it computes has another
    precision in PyTorch.

    >>> with autocast("cuda"):
    ...     pass
    """

    def __init__(self, device_type: str = "cuda", dtype: Any = None, enabled: bool = True, cache_enabled: Any = None):
        if enabled and device_type == "cpu":
            raise ValueError(PRECISION)
        self.device, self.fast_dtype = device_type, dtype

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class GradScaler:
    """Scales by one, as PyTorch's does without a GPU: losses and gradients keep their values.

    >>> import fad.eager as torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> scaler, optimizer = GradScaler(), torch.optim.SGD([w], lr=0.5)
    >>> scaler.scale((w**2).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w
    tensor([0.], requires_grad=True)
    """

    def __init__(self, device: str = "cuda", *args: Any, enabled: bool = True, **settings: Any):
        if enabled and device == "cpu":
            raise ValueError(PRECISION)

    def scale(self, outputs: Any) -> Any:
        """Return the outputs."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Do nothing: gradients are not scaled."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Let the optimizer take its step."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Do nothing: the scale is one."""

    def get_scale(self) -> float:
        return 1.0

    def is_enabled(self) -> bool:
        return False

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing: there is no state."""


__all__ = ["GradScaler", "autocast"]

__getattr__ = explain_missing("torch.amp", globals())
