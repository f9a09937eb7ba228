"""``save`` and ``load``: trees of arrays in safetensors files, whole or not at all, and never pickle.

The format is that of https://huggingface.co/docs/safetensors: eight bytes with the length of a JSON header,
the header (name -> dtype, shape, byte range), the bytes of the arrays. It is read and written here, so that both work
with NumPy alone, and so that every malformed file is one kind of error: the safetensors package, beside which the
tests check this file, takes a name that stands twice, and has other errors for shapes and dtypes that NumPy has not.
A saved model has PyTorch's names, so PyTorch reads it too.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import re
import stat
from collections.abc import Iterable
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np

from fad import backends
from fad.core.runs.effects import Stateful
from fad.core.tracing.tracer import Tracer
from fad.errors import FadError
from fad.typing import PyTree

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

_NAMES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1", "C64": "<c8",
}  # fmt: skip
_DTYPES = {np.dtype(code): name for name, code in _NAMES.items()}
_LONGEST_HEADER = 100_000_000
_METADATA = "__metadata__"  # what the format calls the strings that a file holds beside its arrays
_MOST_AXES = 64  # of a NumPy array
_ENTRY = {"dtype", "shape", "data_offsets"}
_PLAIN = (bool, int, float, str)


class FileFormatError(FadError, ValueError):
    """A file is not what `load` can read: truncated, damaged, of another format, or of other contents than requested.

    Wrong::

        fad.load("weights.pt")               # a pickle: it could run any program, so fad never reads one

    Right::

        fad.load("weights.safetensors")
    """


# --- save ------------------------------------------------------------------------------------------------------------


def save(path: str | os.PathLike, value: PyTree) -> None:
    """Write a tree of arrays, numbers, strings and models to a safetensors file.

    The file appears under its name only when it is complete: a crash leaves the old file as it was, and the next save
    removes what the killed process had written. A file that is replaced keeps its permissions; a new one has those that
    the process gives its files (its umask). A `Module` is saved as its ``state_dict(everything=True)``.

    Returns
    -------
    None

    Parameters
    ----------
    path : str or path
    value : dicts with string keys, lists, tuples, None, arrays, numbers, strings, modules; at any depth.

    Raises
    ------
    TypeError
        for anything else in the tree, before anything is written.
    ValueError
        for an array whose key is ``__metadata__``, which the format keeps for itself.

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
    header: dict[str, Any] = {_METADATA: metadata}
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
    if len(text) > _LONGEST_HEADER:
        raise ValueError(f"the names and strings of this tree take {len(text)} bytes; a header has {_LONGEST_HEADER}")
    contents = (np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("<")) for x in arrays.values())
    _write(Path(os.path.realpath(path)), len(text).to_bytes(8, "little") + text, contents)


def _write(path: Path, header: bytes, contents: Iterable[np.ndarray]) -> None:
    _remove_abandoned(path)
    old = _status(path)
    with _create_part(path, 0o666 if old is None else 0o600) as part:
        try:
            part.write(header)
            for x in contents:
                part.write(x.data if x.size else b"")
            part.flush()
            os.fsync(part.fileno())
            if old is not None:
                _take_over(part.name, old)
            if fcntl is None:
                part.close()  # elsewhere an open file cannot be renamed; here it stays locked until it is
            os.replace(part.name, path)
        except BaseException:
            part.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part.name)
            raise


def _status(path: Path) -> os.stat_result | None:
    """Return the status of the file that will be replaced, or None if there is none."""
    try:
        old = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(old.st_mode):
        raise FileExistsError(f"{path} is a folder, a pipe or a device; a tree is saved to a file")
    return old


def _take_over(name: str, old: os.stat_result) -> None:
    """Give a new file the owner, the group and the permissions of the one that it will replace."""
    mode = stat.S_IMODE(old.st_mode)
    if hasattr(os, "chown"):
        for ids in ((old.st_uid, -1), (-1, old.st_gid)):
            with contextlib.suppress(PermissionError):
                os.chown(name, *ids)
        if os.stat(name).st_gid != old.st_gid:
            mode &= ~stat.S_IRWXG  # they were meant for another group
    os.chmod(name, mode)


# --- files that are being written -----------------------------------------------------------------------------------
#
# A tree is written to `NAME.<random>.part`, locked until it has become NAME. The lock ends with the process, so
# a part file that can be locked is abandoned.


def _create_part(path: Path, mode: int) -> BufferedWriter:
    """Create and lock the file that will become `path`, readable as `mode` and the umask have it."""
    while True:
        with contextlib.suppress(FileExistsError):
            name = f"{path}.{os.urandom(8).hex()}.part"
            part = open(name, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115 - returned
            _lock(part.fileno())
            if fcntl is None or os.fstat(part.fileno()).st_nlink:
                return part
            part.close()  # another save removed it before it was locked


def _remove_abandoned(path: Path) -> None:
    """Remove the part files of `path` whose processes were killed."""
    if fcntl is None:
        return
    pattern = re.compile(re.escape(path.name) + r"\.[0-9a-f]{16}\.part")
    with contextlib.suppress(OSError):
        for name in filter(pattern.fullmatch, os.listdir(path.parent)):
            with contextlib.suppress(OSError):
                handle = os.open(path.parent / name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if _lock(handle, fcntl.LOCK_NB):
                        os.unlink(path.parent / name)
                finally:
                    os.close(handle)


def _lock(handle: int, how: int = 0) -> bool:
    """Lock an open file for this process; return whether it is locked. Some file systems know no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | how)
    except OSError:
        return False
    return True


# --- the tree as JSON -----------------------------------------------------------------------------------------------


def _describe(x: Any, name: str, arrays: dict) -> Any:
    """Return the tree as JSON, each array as the name under which it is put into `arrays`."""
    if x is None or type(x) in _PLAIN:
        return {"value": x}
    if isinstance(x, Stateful):
        return {"module": _describe(x.state_dict(everything=True), name, arrays)}
    if type(x) is dict:
        wrong = [k for k in x if not isinstance(k, str)]
        if wrong:
            raise TypeError(f"the keys of saved dictionaries are strings, not {wrong[0]!r}")
        return {"dict": {k: _describe(v, _join(name, k), arrays) for k, v in x.items()}}
    if type(x) in (list, tuple):
        return {type(x).__name__: [_describe(v, _join(name, str(i)), arrays) for i, v in enumerate(x)]}
    if type(x) is Tracer:
        raise TypeError(f"{name or 'the value'} is a traced array: save outside of grad, vmap and related functions")
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return _describe_array(x, name or "value", arrays)
    raise TypeError(f"{name or 'the value'} is a {type(x).__name__}; a file holds arrays, numbers, strings and modules")


def _describe_array(x: Any, name: str, arrays: dict) -> Any:
    if name == _METADATA:
        raise ValueError(f"an array was given the key {name!r}, which safetensors files keep for themselves: rename it")
    while name in arrays:
        name += "_"
    arrays[name] = np.asarray(backends.device_get(x))
    return {"array": name, "scalar": True} if isinstance(x, np.generic) else {"array": name}


def _join(prefix: str, key: str) -> str:
    return f"{prefix}.{key}" if prefix else key


# --- load ------------------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike, like: PyTree | None = None) -> PyTree:
    """Read a safetensors file: the tree that was saved, or a dictionary by name if the file is not from fad.

    Returns
    -------
    tree
        In the structure of `like`, or a dictionary.

    Parameters
    ----------
    path : str or path
    like : tree, optional
        What is expected: the result has its structure, with copies of its modules loaded; it is not changed. Nothing is
        cast: to read an array of another dtype, load without `like` and cast it.

    Raises
    ------
    FileNotFoundError
    FileFormatError
        for a file that is truncated, damaged or no safetensors file, or that does not fit `like` in structure, shapes
        and dtypes (all differences are listed).

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
        if "fad" in metadata:
            _join_complex(arrays, _parse(metadata.get("complex", "[]")))
            found = _rebuild(_parse(metadata["fad"]), arrays)
            if arrays:
                raise ValueError(f"the arrays {sorted(arrays)} have no place in it")
        else:
            found = arrays
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
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
    with open(path, "rb") as file:
        length = os.fstat(file.fileno()).st_size
        header, start = _read_header(path, file, length)
        metadata = header.pop(_METADATA, {})
        if type(metadata) is not dict or not all(type(v) is str for v in metadata.values()):
            raise FileFormatError(f"{path}: the metadata in the header are no strings")
        entries = {name: _check_entry(path, name, entry) for name, entry in header.items()}
        end = start
        for name, (_, _, a, b) in sorted(entries.items(), key=lambda item: item[1][2:]):
            if start + a != end:
                raise FileFormatError(f"{path}: {name!r} starts at byte {start + a}, where {end} is expected")
            end = start + b
        if end != length:
            what = f"has {length - end} bytes after its last array" if end < length else f"should end at byte {end}"
            raise FileFormatError(f"{path} {what}: it is damaged or truncated")
        arrays = {n: _read_array(path, n, file, start + a, dt, shape) for n, (dt, shape, a, _) in entries.items()}
    return arrays, metadata


def _read_header(path: Path, file: BufferedReader, size: int) -> tuple[dict, int]:
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 9 or length > _LONGEST_HEADER or start[8:] != b"{":
        raise FileFormatError(f"{path} is not a safetensors file (pickles, .npz and .pt files are not read)")
    if 8 + length > size:
        raise FileFormatError(f"{path} is truncated: its header ends at byte {8 + length}, the file at {size}")
    file.seek(8)
    try:
        return _parse(file.read(length).decode()), 8 + length
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: the header is damaged ({error})") from None


def _parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_make_dict)


def _make_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [k for k, _ in pairs]
        raise ValueError(f"the name {next(k for k in names if names.count(k) > 1)!r} stands in it twice")
    return found


def _check_entry(path: Path, name: str, entry: Any) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """Return the dtype, the shape and the byte range of an array that the header describes."""
    if type(entry) is not dict or entry.keys() != _ENTRY or not all(type(entry[k]) is list for k in _ENTRY - {"dtype"}):
        raise FileFormatError(f"{path}: the entry {name!r} of the header is no array's dtype, shape and data_offsets")
    code, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(code) is not str or code not in _NAMES:
        raise FileFormatError(f"{path}: {name!r} has dtype {str(code)[:20]!r}; NumPy has {', '.join(_NAMES)}")
    if len(shape) > _MOST_AXES or len(place) != 2 or not all(type(d) is int and 0 <= d < 2**63 for d in shape + place):
        raise FileFormatError(f"{path}: the shape or the data_offsets of {name!r} are not those of a NumPy array")
    dtype = np.dtype(_NAMES[code])
    size = math.prod(shape) * dtype.itemsize
    if place[1] - place[0] != size:
        raise FileFormatError(f"{path}: {name!r} of shape {shape} has {size} bytes, but data_offsets {place}")
    return dtype, tuple(shape), *place


def _read_array(path: Path, name: str, file: BufferedReader, start: int, dtype: np.dtype, shape: tuple) -> np.ndarray:
    try:
        x = np.empty(shape, dtype)
    except ValueError as error:  # too big for its strides, though without elements
        raise FileFormatError(f"{path}: {name!r} of shape {shape} cannot be a NumPy array ({error})") from None
    if x.size:
        file.seek(start)
        if file.readinto(x.reshape(-1).view(np.uint8).data) != x.nbytes:
            raise FileFormatError(f"{path} is truncated: it became shorter while {name!r} was read")
        if dtype.kind == "b" and x.view(np.uint8).max() > 1:
            raise FileFormatError(f"{path}: {name!r} is boolean, but has bytes other than 0 and 1")
    return x


def _join_complex(arrays: dict[str, np.ndarray], names: Any) -> None:
    """Make complex arrays of those that were saved as pairs of real numbers, in place."""
    if type(names) is not list:
        raise ValueError("the names of complex arrays are no list")
    for name in names:
        x = arrays[name]
        if x.dtype.char not in "fd" or x.shape[-1:] != (2,):
            raise ValueError(f"{name!r} holds no pairs of real numbers")
        arrays[name] = x.view(np.result_type(x.dtype, np.complex64))[..., 0]


def _rebuild(shape: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the tree that `shape` describes; the arrays are taken out of `arrays`."""
    (kind, inner), *rest = shape.items()
    if kind == "array" and rest in ([], [("scalar", True)]):
        x = arrays.pop(inner)
        if rest and x.ndim:
            raise ValueError(f"{inner!r} is no scalar")
        return x[()] if rest else x
    if rest:
        raise ValueError(f"{rest[0][0]!r} has no meaning there")
    if kind == "value" and (inner is None or type(inner) in _PLAIN):
        return inner
    if kind == "module":
        return _rebuild(inner, arrays)
    if kind == "dict":
        return {k: _rebuild(v, arrays) for k, v in inner.items()}
    if kind in ("tuple", "list") and type(inner) is list:
        xs = [_rebuild(v, arrays) for v in inner]
        return tuple(xs) if kind == "tuple" else xs
    raise ValueError(f"{kind!r} has no meaning there")


def _fit(found: Any, like: Any, name: str, wrong: list) -> Any:
    """Bring what was found into the structure of `like`; what does not fit is added to `wrong`."""
    here = name or "the tree"
    if isinstance(like, Stateful):
        return _fit_module(found, like, here, wrong)
    if type(like) in (dict, list, tuple):
        return _fit_container(found, like, name, here, wrong)
    if hasattr(like, "dtype"):
        shape = np.shape(found)
        if not hasattr(found, "dtype") or shape != like.shape:
            wrong.append(f"{here}: expected an array of shape {like.shape}, found {_kind(found)}")
            return found
        if _differ(found.dtype, like.dtype):
            wrong.append(f"{here}: expected dtype {like.dtype}, found {found.dtype}")
            return found
        return found.astype(like.dtype, copy=False)  # its byte order
    if type(found) is not type(like):
        wrong.append(f"{here}: expected {_kind(like)}, found {_kind(found)}")
    return found


def _fit_module(found: Any, like: Stateful, here: str, wrong: list) -> Any:
    if type(found) is not dict:
        wrong.append(f"{here}: expected the state of a {type(like).__name__}, found {_kind(found)}")
        return found
    for name, x in like.state_dict(everything=True).items():
        if name in found and _differ(getattr(found[name], "dtype", np.dtype(object)), x.dtype):
            wrong.append(f"{here}: {name}: expected an array of {x.dtype}, found {_kind(found[name])}")
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


def _differ(a: np.dtype, b: np.dtype) -> bool:
    return a.newbyteorder("=") != b.newbyteorder("=")


def _kind(x: Any) -> str:
    if hasattr(x, "dtype"):
        return f"an array of shape {x.shape} and dtype {x.dtype}"
    if type(x) is dict:
        return f"a dict with keys {sorted(x)}"
    return f"a {type(x).__name__} of length {len(x)}" if type(x) in (list, tuple) else repr(x)
