"""The cache of compiled kernels on disk.

What is read here is run, so the folder and every entry must belong to this user, and nobody else may write to them. An
entry is checked after it was opened, when nobody can put another in its place. One that others could have made is not
read, and the folder is not used any more.

An entry is written to a file of its own beside its place and then renamed, so readers see it whole or not at all, and
several processes may write at once. An entry carries a digest of its name and contents; a broken one is ignored.
A folder that cannot be written, or is full, costs nothing but the next compilation.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from fad import config

_FORMAT = b"fad2"
_PART = "part-"  # begins the name of an entry that is being written
_ABANDONED = 3600.0  # seconds after which its writer is gone
_FOLDER, _KEY = re.compile("[0-9a-f]{2}"), re.compile("[0-9a-f]{64}")
# An entry is opened itself, not what a link points to, and a pipe that nobody writes to is not waited for.
_READING = os.O_RDONLY | sum(getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "CLOEXEC", "BINARY"))

_refused: dict[Path, str] = {}  # folders that are not used, and why
_written: dict[Path, int] = {}  # bytes written since a folder was measured, at first with a random part of a share


class _Untrusted(Exception):
    """Somebody else could have written what would be run."""


def folder() -> Path | None:
    """Return where compiled kernels are kept: ``FAD_CACHE_DIR`` (empty: nowhere), or the user's cache folder."""
    chosen = os.environ.get("FAD_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "fad" if os.path.isabs(base) else None  # there may be no home, and "~" is no folder


def read(key: str) -> bytes | None:
    """Return an entry, or None if there is none or it is broken."""
    if not _KEY.fullmatch(key):
        return None  # it stood in a broken entry
    with _use_folder() as where:
        if where is not None:
            data = _contents(where, key)
            head, digest, code = data[:4], data[4:36], data[36:]
            return code if head == _FORMAT and _digest(key, code) == digest else None
    return None


def write(key: str, code: bytes) -> bool:
    """Keep an entry; false if that was not possible."""
    with _use_folder() as where:
        if where is not None and len(code) <= config.kernel_cache_bytes.get():
            _make(where / key[:2])
            _check_folders(where, key)
            data = _FORMAT + _digest(key, code) + code
            _put(where / key[:2] / key, data)
            if where not in _written:
                _written[where] = int(_draw() * _share())
            _written[where] += len(data)
            return True
    return False


def trim() -> None:
    """Remove the oldest entries until the cache is below its limit, and what killed processes left.

    To measure a folder takes long, so that is done when a process has written a sixteenth of the limit, the first time
    after a random part of it: of many processes that write little, one in a sixteenth of the limit measures.
    """
    with _use_folder() as where:
        limit = config.kernel_cache_bytes.get()
        if where is None or where not in _written or _written[where] < _share():
            return
        _written[where] = 0
        entries = sorted(_entries(where))
        total = sum(size for _, size, _ in entries)
        now = time.time()
        for changed, size, place in entries:
            if total > limit or (place.name.startswith(_PART) and now - changed > _ABANDONED):
                with contextlib.suppress(OSError):  # another process may be faster
                    place.unlink()
                total -= size


def _share() -> float:
    """Return how many bytes may be written between two measurements."""
    return config.kernel_cache_bytes.get() / 16


def _draw() -> float:
    """Return a random number between 0 and 1, which no generator of the program gives."""
    return int.from_bytes(os.urandom(4), "little") / 2**32


def describe() -> str:
    """Say in a few words where compiled kernels are kept."""
    where = folder()
    if where is None:
        return "memory only (FAD_CACHE_DIR is empty, or there is no home)"
    try:
        _check_folder(where)
    except _Untrusted as why:
        return f"memory only ({why})"
    except OSError:
        pass  # it is made when something is written
    return f"memory only ({_refused[where]})" if where in _refused else str(where)


# --- files ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _use_folder() -> Iterator[Path | None]:
    """Give the folder, or None where none is used; do without what fails, and warn once of what is not safe."""
    where = folder()
    try:
        yield None if where in _refused else where
    except OSError:
        pass
    except _Untrusted as why:
        assert where is not None
        _refused[where] = str(why)
        warnings.warn(
            f"compiled kernels are not kept on disk: {why}. They are run as machine code, so the folder and its files "
            f"must be yours and writable for nobody else: remove {where}, or name another in FAD_CACHE_DIR",
            RuntimeWarning,
            stacklevel=4,
        )


def _check(found: os.stat_result, place: Path) -> None:
    """Raise _Untrusted unless something belongs to this user and nobody else may write to it."""
    if hasattr(os, "geteuid"):  # elsewhere a user's folders are protected by lists that are no part of a mode
        if found.st_uid != os.geteuid():
            raise _Untrusted(f"{place} belongs to another user (number {found.st_uid})")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _Untrusted(f"others may write to {place} (its mode is {stat.S_IMODE(found.st_mode):o})")


def _check_folder(place: Path) -> None:
    found = os.lstat(place)
    if stat.S_ISLNK(found.st_mode):
        raise _Untrusted(f"{place} is a symbolic link")
    _check(found, place)


def _check_folders(where: Path, key: str) -> None:
    _check_folder(where)
    _check_folder(where / key[:2])


def _contents(where: Path, key: str) -> bytes:
    """Return what a file holds that is this user's own."""
    _check_folders(where, key)
    place = where / key[:2] / key
    if stat.S_ISLNK(os.lstat(place).st_mode):  # an error of its own where opening does not follow links
        raise _Untrusted(f"{place} is a symbolic link")
    handle = os.open(place, _READING)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise _Untrusted(f"{place} is no regular file")
        _check(found, place)
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def _make(place: Path) -> None:
    """Make a folder, and those above it, for this user alone, whatever the process's mask."""
    missing = [p for p in (place, *place.parents) if not p.exists()]
    for p in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process may be faster
            p.mkdir(0o700)
            p.chmod(0o700)


def _put(place: Path, data: bytes) -> None:
    """Write a file for this user alone; where that fails, or is interrupted, leave nothing behind."""
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=_PART)
    try:
        with os.fdopen(handle, "wb") as file:
            os.chmod(temporary, 0o600)
            file.write(data)
        os.replace(temporary, place)
    except BaseException:  # Ctrl-C as well
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _entries(where: Path) -> Iterator[tuple[float, int, Path]]:
    """Return when each entry was written, its size and its place."""
    _check_folder(where)
    for inner in os.scandir(where):
        if _FOLDER.fullmatch(inner.name) and inner.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                for entry in os.scandir(inner.path):
                    if _KEY.fullmatch(entry.name) or entry.name.startswith(_PART):
                        with contextlib.suppress(OSError):  # gone since
                            found = entry.stat(follow_symlinks=False)
                            yield found.st_mtime, found.st_size, Path(entry.path)


def _digest(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + code).digest()
