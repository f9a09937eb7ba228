"""Devices, as far as programs request them: the eager API lives in host memory."""

from __future__ import annotations


class device:
    """The name of a device; ``cpu`` is the one there is.

    >>> device("cpu")
    device(type='cpu')
    """

    def __init__(self, name: str):
        self.type = str(name).partition(":")[0]
        if self.type != "cpu":
            raise ValueError(f"the eager API keeps tensors in host memory; there is no device {name!r}")

    def __repr__(self) -> str:
        return f"device(type={self.type!r})"

    def __str__(self) -> str:
        return self.type


class cuda:
    """Questions about GPUs, answered with no: on a GPU use `fad` with CuPy's arrays."""

    @staticmethod
    def is_available() -> bool:
        return False

    @staticmethod
    def device_count() -> int:
        return 0
