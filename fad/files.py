"""``save`` and ``load``: trees of arrays in safetensors files, whole or not at all, and never pickle.

The format is that of https://huggingface.co/docs/safetensors: eight bytes with the length of a JSON header,
the header (name -> dtype, shape, place), the bytes of the arrays. It is simple enough to be written here, with every
check that a file from elsewhere needs. A saved model has PyTorch's names, so PyTorch reads it too.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fad import backends
from fad.core.tracer import Tracer
from fad.errors import FadError
from fad.nn.module import Module

_NAMES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1", "C64": "<c8",
}  # fmt: skip
_DTYPES = {np.dtype(code): name for name, code in _NAMES.items()}
_LONGEST_HEADER = 100_000_000
_PLAIN = (bool, int, float, str)


class FileFormatError(FadError, ValueError):
    """A file is not what `load` can read: truncated, damaged, of another format, or of other contents than asked for.

    Wrong::

        fad.load("weights.pt")               # a pickle: it could run any program, so fad never reads one

    Right::

        fad.load("weights.safetensors")
    """


# --- save ------------------------------------------------------------------------------------------------------------


def save(path: Any, value: Any) -> None:
    """Write a tree of arrays, numbers, strings and models to a safetensors file.

    The file appears under its name only when it is complete: a crash leaves the old file as it was.
    A `Module` is saved as its ``state_dict(everything=True)``.

    Parameters
    ----------
    path : str or path
    value : dicts with string keys, lists, tuples, None, arrays, numbers, strings, modules; at any depth.

    Raises
    ------
    TypeError
        for anything else in the tree, before anything is written.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
    >>> save(path, {"w": np.ones(2), "epoch": 3})
    >>> load(path)
    {'w': array([1., 1.]), 'epoch': 3}
    """
    arrays: dict[str, Any] = {}
    shape = _describe(value, "", arrays)
    metadata = {"fad": json.dumps(shape)}
    header: dict[str, Any] = {"__metadata__": metadata}
    complexes, place = [], 0
    for name, x in arrays.items():
        if x.dtype.kind == "c":
            complexes.append(name)
            x = arrays[name] = np.ascontiguousarray(x).reshape(*x.shape, 1).view(x.real.dtype)
        dtype = x.dtype.newbyteorder("<")
        if dtype not in _DTYPES:
            raise TypeError(f"{name or 'the array'} has dtype {x.dtype}, which safetensors files cannot hold")
        end = place + x.size * x.dtype.itemsize
        header[name] = {"dtype": _DTYPES[dtype], "shape": list(x.shape), "data_offsets": [place, end]}
        place = end
    metadata["complex"] = json.dumps(complexes)
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    parts = [len(text).to_bytes(8, "little"), text]
    parts += [np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("<")).tobytes() for x in arrays.values()]
    _write(Path(path), parts)


def _write(path: Path, parts: list[bytes]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _describe(x: Any, name: str, arrays: dict) -> Any:
    """Return the tree as JSON, each array as the name under which it is put into `arrays`."""
    if x is None or type(x) in _PLAIN:
        return {"value": x}
    if isinstance(x, Module):
        return {"module": _describe(x.state_dict(everything=True), name, arrays)}
    if type(x) is dict:
        wrong = [k for k in x if not isinstance(k, str)]
        if wrong:
            raise TypeError(f"the keys of saved dictionaries are strings, not {wrong[0]!r}")
        return {"dict": {k: _describe(v, _join(name, k), arrays) for k, v in x.items()}}
    if type(x) in (list, tuple):
        return {type(x).__name__: [_describe(v, _join(name, str(i)), arrays) for i, v in enumerate(x)]}
    if type(x) is Tracer:
        raise TypeError(f"{name or 'the value'} is a traced array: save outside of grad, vmap and their kin")
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return _describe_array(x, name or "value", arrays)
    raise TypeError(f"{name or 'the value'} is a {type(x).__name__}; a file holds arrays, numbers, strings and modules")


def _describe_array(x: Any, name: str, arrays: dict) -> Any:
    while name in arrays:
        name += "_"
    arrays[name] = np.asarray(backends.device_get(x))
    return {"array": name, "scalar": True} if isinstance(x, np.generic) else {"array": name}


def _join(prefix: str, key: str) -> str:
    return f"{prefix}.{key}" if prefix else key


# --- load ------------------------------------------------------------------------------------------------------------


def load(path: Any, like: Any = None) -> Any:
    """Read a safetensors file: the tree that was saved, or a dictionary by name if the file is not from fad.

    Parameters
    ----------
    path : str or path
    like : tree, optional
        What is expected: the result has its structure and dtypes, with copies of its modules loaded; it is not changed.

    Raises
    ------
    FileNotFoundError
    FileFormatError
        for a file that is truncated, damaged or no safetensors file, or that does not fit `like` (all differences
        are listed).

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
    >>> save(path, [np.zeros(2), 1.5])
    >>> load(path, like=[np.ones(2), 0.0])
    [array([0., 0.]), 1.5]
    """
    arrays, metadata = read(Path(path))
    try:
        shape = json.loads(metadata["fad"]) if "fad" in metadata else {"dict": {k: {"array": k} for k in arrays}}
        for name in json.loads(metadata.get("complex", "[]")):
            x = arrays[name]
            arrays[name] = x.view(np.result_type(x.dtype, np.complex64))[..., 0]
        found = _rebuild(shape, arrays)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, ValueError) as error:
        raise FileFormatError(f"{path}: the description of the tree in this file is damaged ({error!r})") from None
    if like is None:
        return found
    wrong: list[str] = []
    out = _fit(found, like, "", wrong)
    if wrong:
        raise FileFormatError(f"{path} does not hold what `like` expects:\n  " + "\n  ".join(wrong))
    return out


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays and the metadata of any safetensors file."""
    data = path.read_bytes()
    header, start = _header(path, data)
    metadata = header.pop("__metadata__", {})
    arrays, end = {}, 0
    for name, entry in header.items():
        try:
            dtype = np.dtype(_NAMES[entry["dtype"]])
            shape = tuple(entry["shape"])
            a, b = entry["data_offsets"]
            good = all(type(d) is int and d >= 0 for d in (*shape, a, b)) and a <= b
        except (KeyError, TypeError, ValueError):
            raise FileFormatError(f"{path}: the entry {name!r} of the header cannot be read: {entry!r:.80}") from None
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if not good or b - a != size:
            raise FileFormatError(f"{path}: {name!r} of shape {shape} needs {size} bytes, but its place is {a} to {b}")
        if start + b > len(data):
            raise FileFormatError(f"{path} is truncated: {name!r} ends at byte {start + b}, the file at {len(data)}")
        arrays[name] = np.frombuffer(data, dtype, size // dtype.itemsize, start + a).reshape(shape).copy()
        end = max(end, b)
    if start + end != len(data):
        raise FileFormatError(f"{path} has {len(data) - start - end} bytes after its last array: it is damaged")
    return arrays, metadata


def _header(path: Path, data: bytes) -> tuple[dict, int]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > _LONGEST_HEADER or data[8:9] != b"{":
        raise FileFormatError(f"{path} is not a safetensors file (pickles, .npz and .pt files are not read)")
    if 8 + length > len(data):
        raise FileFormatError(f"{path} is truncated: its header ends at byte {8 + length}, the file at {len(data)}")
    try:
        header = json.loads(data[8 : 8 + length])
    except ValueError as error:
        raise FileFormatError(f"{path}: the header is damaged ({error})") from None
    return header, 8 + length


def _rebuild(shape: dict, arrays: dict) -> Any:
    if "value" in shape:
        return shape["value"]
    if "array" in shape:
        x = arrays[shape["array"]]
        return x[()] if shape.get("scalar") else x
    if "module" in shape:
        return _rebuild(shape["module"], arrays)
    if "dict" in shape:
        return {k: _rebuild(v, arrays) for k, v in shape["dict"].items()}
    if "tuple" in shape:
        return tuple(_rebuild(v, arrays) for v in shape["tuple"])
    return [_rebuild(v, arrays) for v in shape["list"]]


def _fit(found: Any, like: Any, name: str, wrong: list) -> Any:
    """Bring what was found into the structure of `like`; what does not fit is added to `wrong`."""
    here = name or "the tree"
    if isinstance(like, Module):
        return _fit_module(found, like, here, wrong)
    if type(like) in (dict, list, tuple):
        return _fit_container(found, like, name, here, wrong)
    if hasattr(like, "dtype"):
        shape = np.shape(found)
        if not hasattr(found, "dtype") or shape != like.shape:
            wrong.append(f"{here}: expected an array of shape {like.shape}, found {_kind(found)}")
            return found
        return found.astype(like.dtype)
    if type(found) is not type(like):
        wrong.append(f"{here}: expected {_kind(like)}, found {_kind(found)}")
    return found


def _fit_module(found: Any, like: Module, here: str, wrong: list) -> Any:
    if type(found) is not dict:
        wrong.append(f"{here}: expected the state of a {type(like).__name__}, found {_kind(found)}")
        return found
    model = copy.deepcopy(like)
    try:
        return model.load_state_dict(found)
    except ValueError as error:
        wrong.extend(f"{here}: {line.strip()}" for line in str(error).splitlines()[1:])
        return found


def _fit_container(found: Any, like: Any, name: str, here: str, wrong: list) -> Any:
    if type(found) is not type(like) or len(found) != len(like) or (type(like) is dict and found.keys() != like.keys()):
        wrong.append(f"{here}: expected {_kind(like)}, found {_kind(found)}")
        return found
    if type(like) is dict:
        return {k: _fit(found[k], like[k], _join(name, k), wrong) for k in like}
    pairs = enumerate(zip(found, like, strict=True))
    return type(like)(_fit(a, b, _join(name, str(i)), wrong) for i, (a, b) in pairs)


def _kind(x: Any) -> str:
    if hasattr(x, "dtype"):
        return f"an array of shape {x.shape}"
    if type(x) is dict:
        return f"a dict with keys {sorted(x)}"
    return f"a {type(x).__name__} of length {len(x)}" if type(x) in (list, tuple) else repr(x)
