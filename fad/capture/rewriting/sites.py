"""What is known of a loop or branch from its text alone: where it stands, and which names it binds and reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop in the text of a function."""

    file: str
    line: int
    kind: str  # "for" or "while"
    names: tuple[str, ...] = ()  # that it binds
    carried: tuple[str, ...] = ()  # those of them whose value a step may take from the step before, or hand through
    behind: frozenset[str] = frozenset()  # names that are live behind it
    rebound: frozenset[str] = frozenset()  # names that it binds otherwise than by `x += v`
    updated: tuple[str, ...] = ()  # names of arrays that it may write into, in the order in which they are carried
    operations: int = 0  # in the text of a step
    nested: bool = False  # whether another loop is in it, so that the text does not say how many there are
    leaves: bool = False  # whether it has break or return
    appended: tuple[str, ...] = ()  # names of what it appends to
    filled: tuple[str, ...] = ()  # names of what it binds items of by places that it computes
    joined: tuple[str, ...] = ()  # names of arrays that it makes longer
    prepended: tuple[str, ...] = ()  # names of what it puts elements in front of
    reason: str = ""  # why it is run as it is; empty if it may be captured
    comprehends: bool = False  # whether it stands for a comprehension
    form: str = "runs"  # as what a generator is run that it runs over (`yields.py`)
    raises: bool = False  # whether a step may raise by its text


@dataclass(frozen=True, slots=True)
class Branch:
    """An ``if`` in the text of a function."""

    line: int
    names: tuple[str, ...]
    behind: frozenset[str]
