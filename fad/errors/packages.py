"""Errors about backends, and packages that are not installed."""

from __future__ import annotations

from fad.errors.base import FadError


class BackendMismatchError(FadError, TypeError):
    """Arrays of two backends (NumPy on the host, CuPy on the GPU) met in one operation.

    Wrong::

        np.ones(3) * cupy.ones(3)

    Right::

        fad.device_put(np.ones(3), "cupy") * cupy.ones(3)
    """


class BackendFunctionError(FadError, TypeError):
    """A function was called on arrays of a device that the device's library does not have, nor fad by other means.

    Wrong::

        scipy.special.airy(fad.device_put(np.ones(3), "cupy"))      # CuPy has no airy

    Right::

        fad.device_put(scipy.special.airy(np.ones(3)), "cupy")      # on the host, and back
    """


class BackendNotFoundError(FadError, ImportError):
    """A backend was requested whose package is not installed, or which finds no device that works.

    Right::

        pip install 'cupy-cuda12x[ctk]'      # then, with an NVIDIA GPU and its driver, fad.backends.use("cupy")
    """


class ExtraNotInstalledError(FadError, ImportError):
    """A part of fad was requested that needs a package which is not installed.

    Right::

        pip install 'fad[scipy]'
    """
