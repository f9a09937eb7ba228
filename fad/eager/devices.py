"""Devices, as far as programs request them: the eager API lives in host memory."""

from __future__ import annotations

from fad.eager import amp


class device:
    """The name of a device; ``cpu`` is the one there is.

    >>> device("cpu")
    device(type='cpu')
    """

    index = None

    def __init__(self, name: str | device):
        self.type = str(name).partition(":")[0]
        if self.type != "cpu":
            raise ValueError(f"the eager API keeps tensors in host memory; there is no device {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"device(type={self.type!r})"

    def __str__(self) -> str:
        return self.type


HOST = device("cpu")


class accelerator:
    """Questions about whatever accelerator there is, answered with none."""

    @staticmethod
    def is_available() -> bool:
        return False

    @staticmethod
    def device_count() -> int:
        return 0

    @staticmethod
    def current_accelerator(check_available: bool = False) -> None:
        """Return no device."""


class cuda:
    """Questions about GPUs, answered with no: on a GPU use `fad` with CuPy's arrays. What is asked of them is done."""

    @staticmethod
    def is_available() -> bool:
        return False

    @staticmethod
    def device_count() -> int:
        return 0

    @staticmethod
    def manual_seed(seed: int) -> None:
        """Do nothing, as PyTorch without a GPU: ``torch.manual_seed`` is the one there is."""

    manual_seed_all = manual_seed

    @staticmethod
    def empty_cache() -> None:
        """Do nothing: there is no cache."""

    @staticmethod
    def is_bf16_supported() -> bool:
        return False

    amp = amp  # as it was called before ``torch.amp``


class backends:
    """Questions about PyTorch's libraries, answered with no. Settings of theirs may be written, and change nothing."""

    class mps:
        is_available = is_built = staticmethod(lambda: False)

    class cudnn:
        is_available = staticmethod(lambda: False)
        enabled = benchmark = False
        deterministic = True
