"""The arguments with which the gallery runs the examples that train for minutes, so that they train for seconds."""

from pathlib import Path
from typing import Any

SHORTER = {
    "digits": ["--epochs", "12"],
    "cnn": ["--epochs", "2"],
    "transformer": ["--steps", "60", "--letters", "60"],
    "neural_ode": ["--steps", "500"],
    "hmc": ["--samples", "120"],
    "maml": ["--steps", "100"],
    "matrix_factorisation": ["--steps", "100"],
}


class Arguments:
    """Return the arguments of an example, for sphinx-gallery; its repr says when pages are out of date."""

    def __call__(self, conf: dict[str, Any], script: dict[str, Any]) -> list[str]:
        return SHORTER.get(Path(script["src_file"]).stem, [])

    def __repr__(self) -> str:
        return f"Arguments({SHORTER})"
