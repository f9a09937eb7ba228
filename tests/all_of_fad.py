"""All of fad, imported: modules that `import fad` leaves out register operations too."""

import importlib
import pkgutil

import fad

OPTIONAL = {"scipy", "cupy", "llvmlite", "sklearn", "matplotlib", "tqdm"}


def load() -> dict[str, Exception]:
    """Import every module of fad whose libraries are installed, and return what failed otherwise."""
    failed: dict[str, Exception] = {}
    for found in pkgutil.walk_packages(fad.__path__, "fad."):
        if found.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in OPTIONAL:
                failed[found.name] = error
        except Exception as error:
            failed[found.name] = error
    return failed
