"""The table that `Module.summary` returns."""

from __future__ import annotations

from typing import Any


def table(model: Any) -> str:
    """Return a table of a model's layers: name, kind, shapes of parameters, and how many numbers they hold."""
    rows = [("layer", "kind", "parameters", "count")]
    counted: set[int] = set()
    total = trainable = 0
    for name, module in model.named_modules():
        shapes, count = [], 0
        frozen = module.__dict__.get("_frozen", ())
        for part, holder, key in module._places():
            value = holder[key]
            if not hasattr(value, "dtype"):
                continue
            shared = id(value) in counted
            counted.add(id(value))
            still = part.split(".")[0] in frozen
            shapes.append(f"{part} {_shape(value)}{' shared' if shared else ''}{' frozen' if still else ''}")
            count += 0 if shared else value.size
            trainable += 0 if shared or still else value.size
        total += count
        rows.append((name or "(model)", type(module).__name__, ", ".join(shapes), f"{count:,}" if count else ""))
    buffers = sum(x.size for _, x in model.named_buffers())
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = ["  ".join([*(c.ljust(w) for c, w in zip(row[:3], widths, strict=False)), row[3].rjust(widths[3])])
             for row in rows]  # fmt: skip
    rule = "-" * (sum(widths) + 6)
    end = f"{total:,} parameters, {trainable:,} of them trainable; {buffers:,} numbers in buffers"
    return "\n".join([lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), rule, end])


def _shape(x: Any) -> str:
    return "x".join(map(str, x.shape)) or "scalar"
