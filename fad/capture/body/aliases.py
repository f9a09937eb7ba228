"""Which names may know one array behind a captured loop or branch, whose results are handles of their own.

A link says what an array may be: one from outside, which is the link itself, or one that was made within, for which a
key stands. Names with a link in common may know one array, and so may a name and the array from outside that is its
link.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from fad import tree
from fad.capture.body.context import current
from fad.capture.body.state import is_handle
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import note_alias, root_of
from fad.staging.record import recorder

RETURNED = "what it returns"


def arrays_in(value: Any) -> list[Tracer]:
    """Return the traced arrays in a value; those without axes are taken for numbers."""
    return [x for x in tree.leaves(value) if is_handle(x) and x.shape]


def links_of(values: dict[str, Any], known: Callable, tag: Hashable = None) -> dict[str, list]:
    """Return the links of the arrays that code leaves names bound to.

    ``known(array)`` gives the links of an array that was not made by the code, None for one that was. `tag` tells what
    one way of a branch makes from what the other makes.
    """
    groups = current().aliased  # type: ignore[union-attr]
    found: dict[str, list] = {}
    for name, value in values.items():
        links = found.setdefault(name, [])
        for x in arrays_in(value):
            root = root_of(x)
            mine = [(k, group) for k, group in enumerate(groups) if any(y is root for y in group)]
            links += [(tag, "group", k) for k, _ in mine]
            for y in [root, *(y for _, group in mine for y in group)]:
                outside = known(y)
                if outside is not None:
                    links += outside
                else:
                    links.append((tag, id(y)) if y.owner is recorder.get() else y)
    return found


def note_links(tables: list[dict[str, list]], values: dict[str, Any], alone: Callable) -> None:
    """Note which names may know one array, from the links of what code left them bound to, and their values now.

    ``alone(array)`` says of an array from outside that nobody but these names knew it.
    """
    groups: dict[Hashable, list[Tracer]] = {}
    for links in tables:
        for name, some in links.items():
            for link in some:
                outside = type(link) is Tracer
                group = groups.setdefault(id(link) if outside else link, [])
                group += arrays_in(values.get(name, ()))
                if outside and not alone(link):
                    group.append(link)
    for group in groups.values():
        if len({id(root_of(x)) for x in group}) > 1:
            may_be_one(group)


def may_be_one(group: list[Tracer]) -> None:
    """Note arrays of which some may be one and the same from now on: if one is written, its loops are not captured."""
    body = current()
    if body is not None:
        body.aliased.append([root_of(x) for x in group])
    else:
        note_alias(group)
