"""A world whose ranks are threads of this process: for tests, for debuggers, and to try a program on many ranks.

Every collective is a meeting at a board. A rank posts what it calls, with its array, under the number of its call, and
takes what it needs as soon as all ranks have posted under that number. So it is seen at once where the ranks call
different things, and a rank that has ended or failed is reported to those that wait for it.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad.distributed.communicator import TIMEOUT, Communicator, current, reduce
from fad.distributed.errors import DistributedError, MismatchError
from fad.distributed.sequence import difference
from fad.introspect.frames import user_line

_OF_TWO = ("send", "recv")


class Board:
    """What the ranks of one world share."""

    def __init__(self, size: int):
        self.size = size
        self.changed = threading.Condition()
        self.posts: dict[int, dict[int, tuple]] = {}  # number of the call -> rank -> (call, array, line)
        self.taken: dict[int, int] = {}
        self.letters: dict[tuple, list] = {}
        self.failed: str | None = None

    def fail(self, message: str) -> None:
        with self.changed:
            self.failed = self.failed or message
            self.changed.notify_all()

    def wait_for(self, ready: Callable[[], bool], timeout: float, doing: Callable[[], str]) -> None:
        """Wait until something is ready, which is asked while nobody else changes the board."""
        end = time.monotonic() + timeout
        while not ready():
            if self.failed is not None:
                raise DistributedError(f"{doing()}, and {self.failed}")
            left = end - time.monotonic()
            if left <= 0:
                raise DistributedError(f"{doing()}, and the others did not come within {timeout:g} s")
            self.changed.wait(left)

    def meet(self, rank: int, number: int, post: tuple, timeout: float) -> _Meeting:
        """Post under a number, where all ranks meet."""
        with self.changed:
            posts = self.posts.setdefault(number, {})
            posts[rank] = post
            self.changed.notify_all()
        return _Meeting(self, rank, number, posts, timeout)


class _Meeting:
    """What all ranks post under one number."""

    __slots__ = ("board", "number", "posts", "rank", "timeout")

    def __init__(self, board: Board, rank: int, number: int, posts: dict, timeout: float):
        self.board = board
        self.rank = rank
        self.number = number
        self.posts = posts
        self.timeout = timeout

    def is_done(self) -> bool:
        return len(self.posts) == self.board.size or not _agree(self.posts)

    def collect(self) -> list:
        """Wait for all posts, and return their arrays."""
        board, posts, number = self.board, self.posts, self.number
        mine = posts[self.rank]

        def doing() -> str:
            missing = sorted(set(range(board.size)) - set(posts))
            return f"rank {self.rank} waits in {mine[0][0]} for the ranks {missing}, at {mine[2]}"

        with board.changed:
            try:
                board.wait_for(self.is_done, self.timeout, doing)
                if not _agree(posts):
                    raise MismatchError(difference({r: (*p[0][:4], p[2]) for r, p in posts.items()}))
            finally:
                board.taken[number] = board.taken.get(number, 0) + 1
                if board.taken[number] == board.size:
                    del board.posts[number], board.taken[number]
            return [posts[r][1] for r in range(board.size)]


def _agree(posts: dict) -> bool:
    calls = [post[0] for post in posts.values()]
    return all(call == calls[0] for call in calls)


class _Request:
    __slots__ = ("finish", "is_done")

    def __init__(self, finish: Callable[[], Any], is_done: Callable[[], bool]):
        self.finish = finish
        self.is_done = is_done

    def wait(self) -> Any:
        return self.finish()


class ThreadRank(Communicator):
    """One rank of a world of threads."""

    engine = "threads"

    def __init__(self, board: Board, rank: int, timeout: float, deterministic: bool):
        super().__init__(rank, board.size, timeout, deterministic)
        self.board = board
        self.number = 0

    def run(self, name: str, x: Any, says: tuple = (), **params: Any) -> Any:
        return self.start(name, x, says, **params).wait()

    def start(self, name: str, x: Any, says: tuple = (), **params: Any) -> Any:
        if self.left:
            self.end_left()
        self.calls += 1
        self.nbytes += x.nbytes
        if name in _OF_TWO:
            return _Request(getattr(self, f"_{name}")(np.array(x), **params), lambda: True)
        given = tuple(sorted({**params, **dict(says)}.items()))
        call = (name, () if name == "barrier" else x.shape, str(x.dtype), given)
        meeting = self.meet(call, np.array(x))
        return _Request(lambda: self._as_given(self.take(name, meeting.collect(), params), x), meeting.is_done)

    def take(self, name: str, xs: list, params: dict) -> Any:
        """Return this rank's result of a collective, of what all ranks posted."""
        return getattr(self, f"_{name}")(xs, **params)

    def meet(self, call: tuple, payload: Any) -> _Meeting:
        self.number += 1
        return self.board.meet(int(self.rank), self.number, (call, payload, user_line()), self.timeout)

    def exchange(self, value: Any) -> list:
        return self.meet(("exchange", (), "", ()), value).collect()

    def close(self) -> None:
        call = ("end", (), "", ())
        self.board.meet(int(self.rank), self.number + 1, (call, None, "the end of its program"), self.timeout)

    # --- each gets what all ranks posted, from the first to the last ----------------------------------------------

    def _all_reduce(self, xs: list, op: str) -> Any:
        return reduce(xs, op)

    def _broadcast(self, xs: list, root: int) -> Any:
        return xs[root].copy()

    def _reduce(self, xs: list, root: int) -> Any:
        return reduce(xs, "sum") if self.rank == root else np.zeros_like(xs[0])

    def _all_gather(self, xs: list) -> Any:
        return np.stack(xs)

    def _gather(self, xs: list, root: int) -> Any:
        return np.stack(xs) if self.rank == root else np.zeros_like(xs[0], shape=(self.size, *xs[0].shape))

    def _reduce_scatter(self, xs: list) -> Any:
        return reduce([x[self.rank] for x in xs], "sum")

    def _scatter(self, xs: list, root: int) -> Any:
        return np.array(xs[root][self.rank])

    def _all_to_all(self, xs: list) -> Any:
        return np.stack([x[self.rank] for x in xs])

    def _permute(self, xs: list, pairs: Sequence) -> Any:
        source = next((a for a, b in pairs if b == self.rank), None)
        return np.zeros_like(xs[0]) if source is None else xs[source].copy()

    def _barrier(self, xs: list) -> Any:
        return xs[self.rank].copy()

    # --- messages between two -------------------------------------------------------------------------------------

    def _send(self, x: Any, dest: int, tag: int) -> Any:
        with self.board.changed:
            self.board.letters.setdefault((int(self.rank), dest, tag), []).append(x)
            self.board.changed.notify_all()
        return lambda: np.zeros_like(x, shape=())

    def _recv(self, x: Any, source: int, tag: int) -> Any:
        line = user_line()

        def finish() -> Any:
            box = self.board.letters.setdefault((source, int(self.rank), tag), [])
            with self.board.changed:
                doing = f"rank {self.rank} waits in recv for rank {source}, at {line}"
                self.board.wait_for(lambda: bool(box), self.timeout, lambda: doing)
                y = box.pop(0)
            if (y.shape, y.dtype) != (x.shape, x.dtype):
                raise MismatchError(
                    f"rank {self.rank} expects {x.dtype}{list(x.shape)} of rank {source}, at {line}, and was sent "
                    f"{y.dtype}{list(y.shape)}"
                )
            return y

        return finish


def run_ranks(
    fun: Callable, size: int, *, timeout: float = TIMEOUT, deterministic: bool = True, debug: bool = False
) -> list:  # fmt: skip
    """Run a function on several ranks that are threads of this process, and return what each returned.

    Parameters
    ----------
    fun : callable
        Called as ``fun(comm)``, once in each thread.
    size : int
        How many ranks.
    timeout : float, keyword only
        Seconds that a rank waits for the others in one collective.

    debug : bool, keyword only
        Whether what `spmd` returns as the same on all ranks is compared.

    Raises
    ------
    The error of the first rank that failed; the others are ended.

    Examples
    --------
    >>> import numpy as np
    >>> run_ranks(lambda comm: comm.all_reduce(np.float64(comm.rank)), 3)
    [np.float64(3.0), np.float64(3.0), np.float64(3.0)]
    """
    board = Board(size)
    found: list = [None] * size
    errors: list = []

    def work(rank: int) -> None:
        comm = ThreadRank(board, rank, timeout, deterministic)
        comm.debug = debug
        try:
            current.set(comm)  # in a context of this thread's own
            found[rank] = fun(comm)
            comm.close()
        except BaseException as error:
            errors.append(error)
            board.fail(f"rank {rank} failed with {type(error).__name__}: {error}")

    contexts = [contextvars.copy_context() for _ in range(size)]
    threads = [
        threading.Thread(target=context.run, args=(work, rank), name=f"rank {rank}", daemon=True)
        for rank, context in enumerate(contexts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((e for e in errors if isinstance(e, MismatchError)), errors[0])
    return found
