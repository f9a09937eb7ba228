"""The cache of compiled kernels on disk.

An entry is written to a file of its own beside its place and then renamed, so readers see it whole or not at all, and
several processes may write at once. An entry carries a digest of its contents; a broken one is ignored.
A folder that cannot be written, or is full, costs nothing but the next compilation.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

_FORMAT = b"fad1"
_LIMIT = 256 * 2**20  # bytes; the oldest entries go first


def folder() -> Path | None:
    """Return where compiled kernels are kept: ``FAD_CACHE_DIR`` (empty: nowhere), or the user's cache folder."""
    chosen = os.environ.get("FAD_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "fad"


def read(key: str) -> bytes | None:
    """Return an entry, or None if there is none or it is broken."""
    where = folder()
    if where is None:
        return None
    try:
        data = (where / key[:2] / key).read_bytes()
    except OSError:
        return None
    head, digest, code = data[:4], data[4:36], data[36:]
    return code if head == _FORMAT and hashlib.sha256(code).digest() == digest else None


def write(key: str, code: bytes) -> bool:
    """Keep an entry; false if that was not possible."""
    where = folder()
    if where is None:
        return False
    place = where / key[:2] / key
    temporary = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix="part-")
        with os.fdopen(handle, "wb") as file:
            file.write(_FORMAT + hashlib.sha256(code).digest() + code)
        os.replace(temporary, place)
    except BaseException as error:  # Ctrl-C as well
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        return False
    return True


def trim() -> None:
    """Remove the oldest entries until the cache is below its limit."""
    where = folder()
    if where is None or not where.is_dir():
        return
    with contextlib.suppress(OSError):
        entries = sorted((p.stat().st_mtime, p.stat().st_size, p) for p in where.glob("??/*"))
        total = sum(size for _, size, _ in entries)
        for _, size, place in entries:
            if total <= _LIMIT:
                break
            place.unlink(missing_ok=True)
            total -= size
