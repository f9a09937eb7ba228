"""Checkpoints that all ranks write together, and that any other number of ranks reads.

A checkpoint is a folder of safetensors files, one per rank, and an index. What is the same on all ranks is shared out
among them; a `Shard` is written by the rank that keeps it. The files are written into a folder with another name,
which is given its own when all of them are on the disk: whatever is killed at whatever moment, the last complete
checkpoint stays.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from fad import files, tree
from fad.core.runs.effects import Stateful
from fad.distributed.communicator import Communicator
from fad.distributed.errors import DistributedError
from fad.distributed.worlds import world
from fad.files import FileFormatError

_NAME = re.compile(r"step-(\d{12})")
_PART = re.compile(r"step-\d{12}\.[0-9a-f]{16}\.part")


class Shard:
    """A piece of a vector that is cut over the ranks: ``whole[start : start + len(values)]``, of `length`."""

    __slots__ = ("length", "start", "values")

    def __init__(self, values: Any, start: int, length: int):
        self.values = np.asarray(values)
        self.start = int(start)
        self.length = int(length)


tree.register_node(Shard, lambda s: ([s.values], (s.start, s.length)), lambda aux, xs: Shard(xs[0], *aux))


def save(folder: Any, value: Any, *, step: int, comm: Communicator | None = None, keep: int = 2) -> None:
    """Write a checkpoint of a step; all ranks call it, and it is there for all of them when it returns.

    Parameters
    ----------
    folder : str or path
        Of the checkpoints of one run, on a file system that all ranks see.
    value : tree
        What `fad.save` takes, and pieces of vectors (``opt.shards()``). All but these is the same on all ranks.
    step : int, keyword only
        Its number: `load` takes the largest that is complete.
    keep : int, keyword only
        How many checkpoints stay; older ones are removed when this one is complete.

    Raises
    ------
    DistributedError
        on every rank, if a rank could not write its part; the checkpoints before stay as they are.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> save(folder, {"w": np.ones(2)}, step=10)
    >>> load(folder)
    (10, {'w': array([1., 1.])})
    """
    comm = comm or world()
    if not isinstance(step, (int, np.integer)) or not 0 <= step < 10**12:
        raise ValueError(f"step must be a number from 0 on, as its name in the folder has it, and is {step!r}")
    rank, path = int(comm.rank), Path(folder)
    final = path / f"step-{step:012d}"
    token = comm.exchange(os.urandom(8).hex() if rank == 0 else None)[0]
    part = path / f"{final.name}.{token}.part"
    error = _try_call(lambda: part.mkdir(parents=True)) if rank == 0 else None
    _all_well(comm, error, final)
    found = comm.exchange(_try_call(lambda: _write_part(part, value, comm)))
    wrong = [e for e in found if isinstance(e, str)]
    if wrong:
        if rank == 0:
            shutil.rmtree(part, ignore_errors=True)
        raise DistributedError(f"the checkpoint {final} was not written: {wrong[0]}")
    error = _try_call(lambda: _complete(part, final, found, keep)) if rank == 0 else None
    _all_well(comm, error, final)


def _try_call(run: Any) -> Any:
    """Return what a function returns, or the text of the error that it raises: the other ranks need it."""
    try:
        return run()
    except (OSError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def _all_well(comm: Communicator, error: Any, final: Path) -> None:
    wrong = [e for e in comm.exchange(error) if e is not None]
    if wrong:
        raise DistributedError(f"the checkpoint {final} was not written: {wrong[0]}")


def _write_part(part: Path, value: Any, comm: Communicator) -> dict:
    """Write what this rank is to write, and return what the index says of it."""
    arrays: dict[str, Any] = {}
    mine: dict[str, Any] = {}
    shape = _describe(value, arrays)
    loads = [0] * comm.size
    for name, x in arrays.items():
        if isinstance(x, Shard):
            mine[name] = x.values
            continue
        lightest = loads.index(min(loads))  # the same on all ranks
        loads[lightest] += x.nbytes
        if lightest == comm.rank:
            mine[name] = x
    name = f"rank-{int(comm.rank):05d}-of-{comm.size:05d}.safetensors"
    files.save(part / name, mine)
    pieces = {k: [x.start, len(x.values), x.length] for k, x in arrays.items() if isinstance(x, Shard)}
    return {
        "file": name, "bytes": (part / name).stat().st_size, "crc32": _checksum(part / name), "arrays": sorted(mine),
        "pieces": pieces, "tree": shape,
    }  # fmt: skip


def _checksum(path: Path) -> int:
    total = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            total = zlib.crc32(block, total)
    return total


def _complete(part: Path, final: Path, found: list, keep: int) -> None:
    """Write the index, give the folder its name, and remove what is old."""
    parts = [{k: v for k, v in p.items() if k != "tree"} for p in found]
    index = {"format": 1, "tree": found[0]["tree"], "parts": parts}
    with open(part / "index.json", "w") as file:
        json.dump(index, file)
        file.flush()
        os.fsync(file.fileno())
    _sync(part)
    if final.exists():  # of a run that was repeated from an earlier checkpoint
        old = final.with_name(f"{final.name}.{os.urandom(8).hex()}.part")
        os.replace(final, old)
    os.replace(part, final)
    _sync(final.parent)
    complete = sorted(p.name for p in final.parent.iterdir() if _NAME.fullmatch(p.name))
    later = [name for name in complete if name > final.name]
    earlier = [name for name in complete if name <= final.name]
    for name in (*earlier[: -max(1, keep)], *later):  # what comes after belongs to a run that was given up
        shutil.rmtree(final.parent / name, ignore_errors=True)
    for p in final.parent.iterdir():
        if _PART.fullmatch(p.name):
            shutil.rmtree(p, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Bring the names in a folder onto the disk, where the system lets a folder be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def load(folder: Any, *, step: int | None = None, comm: Communicator | None = None) -> tuple[int, Any] | None:
    """Return ``(step, value)`` of the last complete checkpoint, on any number of ranks; None if there is none.

    Parameters
    ----------
    folder : str or path
    step : int, keyword only
        Another one than the last.

    Returns
    -------
    (step, value) or None
        Vectors that were saved in pieces come whole; ``opt.load_state_dict`` takes the part of each rank.

    Raises
    ------
    FileFormatError
        if a file of the checkpoint is damaged or missing; FileNotFoundError if there is none of that step.
    """
    comm = comm or world()
    path = Path(folder)
    names = sorted(p.name for p in path.iterdir() if _NAME.fullmatch(p.name)) if path.is_dir() else []
    if step is not None:
        names = [name for name in names if int(name[5:]) == step]
        if not names:
            raise FileNotFoundError(f"there is no checkpoint of step {step} in {path}")
    chosen = comm.exchange(names[-1] if names else None)[0]  # what the first rank sees
    if chosen is None:
        return None
    return int(chosen[5:]), _read(path / chosen)


def _read(path: Path) -> Any:
    try:
        index = json.loads((path / "index.json").read_text())
        parts = index["parts"]
        wholes: dict[str, Any] = {}
        for part in parts:
            file = path / part["file"]
            if file.stat().st_size != part["bytes"] or _checksum(file) != part["crc32"]:
                raise FileFormatError(f"{file} is damaged: it has not the bytes that were written")
            for name, x in files.load(file).items():
                if name not in part["pieces"]:
                    wholes[name] = x
                    continue
                start, size, length = part["pieces"][name]
                whole = wholes.setdefault(name, np.zeros(length, x.dtype))
                whole[start : start + size] = x
        return _rebuild(index["tree"], wholes)
    except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{path} is no complete checkpoint: {type(error).__name__}: {error}") from None


# --- the tree as JSON, each array as its name ------------------------------------------------------------------------


def _describe(x: Any, arrays: dict, name: str = "") -> Any:
    if isinstance(x, Stateful):
        return {"dict": _describe(x.state_dict(everything=True), arrays, name)["dict"]}
    if isinstance(x, dict):
        wrong = [k for k in x if not isinstance(k, str)]
        if wrong:
            raise TypeError(f"the keys of saved dictionaries are strings, not {wrong[0]!r}")
        return {"dict": {k: _describe(v, arrays, f"{name}.{k}" if name else k) for k, v in x.items()}}
    if type(x) in (list, tuple):
        return {type(x).__name__: [_describe(v, arrays, f"{name}.{i}" if name else str(i)) for i, v in enumerate(x)]}
    if x is None or type(x) in (bool, int, float, str):
        return {"value": x}
    if not isinstance(x, Shard) and not isinstance(x, (np.ndarray, np.generic)):
        raise TypeError(f"{name or 'the value'} is a {type(x).__name__}; a checkpoint has arrays, numbers and strings")
    while name in arrays or not name:
        name += "_"
    arrays[name] = x if isinstance(x, Shard) else np.asarray(x)
    return {"array": name}


def _rebuild(shape: dict, arrays: dict) -> Any:
    ((kind, inner),) = shape.items()
    if kind == "dict":
        return {k: _rebuild(v, arrays) for k, v in inner.items()}
    if kind in ("list", "tuple"):
        found = [_rebuild(v, arrays) for v in inner]
        return tuple(found) if kind == "tuple" else found
    return arrays[inner] if kind == "array" else inner
