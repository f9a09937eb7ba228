"""What all errors of fad have in common: the user's own line and the address of the error's page in the message."""

from __future__ import annotations

from fad import config
from fad.introspect.frames import user_line

SITE = "https://fad.readthedocs.io/en/stable/"
"""Where the documentation is. The project's addresses in pyproject.toml begin with it too."""


class FadError(Exception):
    """Base of all errors of fad; appends the line of the user's program that led to it, and the error's page.

    ``fad.config.error_links.set(False)`` leaves the address of the page out.
    """

    def __init__(self, message: str = ""):
        line, page = user_line(), page_of(type(self))
        at = f"\n  at {line}" if line else ""
        see = f"\n  see {page}" if page and config.error_links.get() else ""
        super().__init__(f"{message}{at}{see}")


def page_of(error: type) -> str:
    """Return the address of the page about an error, or ``""`` for one that has none.

    >>> page_of(fad.errors.NotLinearError)
    'https://fad.readthedocs.io/en/stable/errors.html#fad.errors.NotLinearError'
    """
    for cls in error.__mro__:
        if cls.__module__.startswith("fad.") and cls is not FadError:
            return f"{SITE}errors.html#{cls.__module__}.{cls.__name__}"
    return ""
