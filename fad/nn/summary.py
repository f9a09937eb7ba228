"""The table that `Module.summary` prints."""

from __future__ import annotations

import copy
from typing import Any

from fad import tree

HEAD = ("layer", "kind", "parameters", "output", "count")


def table(model: Any, *inputs: Any) -> str:
    """Return a table of a model's layers: name, kind, shapes of parameters (and outputs), and how many numbers."""
    shapes = output_shapes(model, inputs) if inputs else {}
    rows = [HEAD]
    counted: set[int] = set()
    total = trainable = 0
    for name, module in model.named_modules():
        parts, count, free = _parameters(module, counted)
        total += count
        trainable += free
        kind = type(module).__name__
        rows.append((name or "(model)", kind, ", ".join(parts), shapes.get(name, ""), f"{count:,}" if count else ""))
    buffers = sum(x.size for _, x in model.named_buffers())
    shown = [i for i in range(len(HEAD)) if HEAD[i] != "output" or inputs]
    widths = [max(len(row[i]) for row in rows) for i in shown]
    lines = ["  ".join(_cell(row[i], w, HEAD[i]) for i, w in zip(shown, widths, strict=True)).rstrip() for row in rows]
    rule = "-" * (sum(widths) + 2 * len(widths) - 2)
    end = f"{total:,} parameters, {trainable:,} of them trainable; {buffers:,} numbers in buffers"
    return "\n".join([lines[0], rule, *lines[1:], rule, end])


def _cell(text: str, width: int, column: str) -> str:
    return text.rjust(width) if column == "count" else text.ljust(width)


def _parameters(module: Any, counted: set[int]) -> tuple[list[str], int, int]:
    """Return descriptions of a module's own parameters, how many numbers they hold, and how many of these are free."""
    parts, count, free = [], 0, 0
    frozen = module.__dict__.get("_frozen", ())
    for name, holder, key in module._places():
        value = holder[key]
        if not hasattr(value, "dtype"):
            continue
        shared = id(value) in counted
        counted.add(id(value))
        still = name.split(".")[0] in frozen
        parts.append(f"{name} {_shape(value)}{' shared' if shared else ''}{' frozen' if still else ''}")
        count += 0 if shared else value.size
        free += 0 if shared or still else value.size
    return parts, count, free


def output_shapes(model: Any, inputs: tuple) -> dict[str, str]:
    """Run a copy of a model in evaluation mode, and return the shape of each layer's last output."""
    model = copy.deepcopy(model).eval()
    shapes: dict[str, str] = {}
    for name, module in model.named_modules():
        module.__dict__["forward"] = _watch(module.forward, name, shapes)
    model(*inputs)
    return shapes


def _watch(forward: Any, name: str, shapes: dict[str, str]) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        out = forward(*args, **kwargs)
        shapes[name] = ", ".join(_shape(x) for x in tree.leaves(out) if hasattr(x, "shape"))
        return out

    return run


def _shape(x: Any) -> str:
    return "x".join(map(str, x.shape)) or "scalar"
