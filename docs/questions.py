"""Show how two clicks on the first page answer newcomers' questions: python docs/questions.py docs/_build/html

A click follows a link of a built page to a heading of the same or of another one. Fails where there is no such way.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

QUESTIONS = {
    "How do I clip gradients?": "howto.html#clip-gradients-gradient-clipping",
    "How do I differentiate an ODE?": "howto.html#take-the-derivative-through-an-ode-ordinary-differential-equation",
    "Why is my gradient None?": "faq.html#why-is-my-gradient-none",
    "How do I get the gradient of each example?": "howto.html#get-the-gradient-of-each-example-per-example-gradients",
    "How do I freeze layers?": "howto.html#freeze-layers",
    "How do I resume training?": "howto.html#save-a-model-and-resume-training",
    "Where does this NaN come from?": "howto.html#find-where-a-nan-comes-from",
    "May I write into arrays?": "faq.html#may-i-write-into-arrays",
    "Is jit worth while for my function?": "choosing.html#jit-or-not",
    "Why is my loop not captured by jit?": "control-flow.html#python-s-loops-under-jit",
    "What does this error mean?": "errors.html#fad.errors.TracerConversionError",
    "Does it run on a GPU?": "faq.html#does-it-run-on-a-gpu",
    "What are the arguments of vmap?": "generated/reference/fad.vmap.html",
}

Place = tuple[str, str]


class Page(HTMLParser):
    """The texts of a page's links, by file and anchor; and its anchors."""

    def __init__(self, root: Path, path: str):
        super().__init__()
        self.root, self.file = root, root / path
        self.links: dict[Place, str] = {}
        self.anchors: set[str] = {""}
        self._to: Place | None = None
        self._text = ""
        self.feed(self.file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        if tag == "a" and found.get("href") and "headerlink" not in (found.get("class") or ""):
            self._to, self._text = self._place(found["href"] or ""), ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._to is not None:
            self.links.setdefault(self._to, " ".join(self._text.split()))
            self._to = None

    def _place(self, link: str) -> Place | None:
        parts = urlsplit(link)
        target = (self.file.parent / unquote(parts.path)).resolve() if parts.path else self.file.resolve()
        if parts.scheme or parts.netloc or target.suffix != ".html" or not target.exists():
            return None
        return str(target.relative_to(self.root.resolve())), unquote(parts.fragment)


def way(root: Path, goal: Place) -> list[str] | None:
    """Return the texts of one or two links that lead from the first page to a place."""
    first = Page(root, "index.html").links
    if goal in first:
        return [first[goal]]
    ways = []
    for path in {path for path, _ in first} - {"index.html"}:
        last = Page(root, path).links.get(goal)
        if last:
            ways.append([next(text for (p, _), text in first.items() if p == path), last])
    return min(ways, key=lambda way: len("".join(way)), default=None)


def main() -> None:
    root, lost = Path(sys.argv[1]), 0
    for question, goal in QUESTIONS.items():
        path, _, anchor = goal.partition("#")
        found = way(root, (path, anchor)) if anchor in Page(root, path).anchors else None
        lost += found is None
        print(f"{question:<44}{' > '.join(found) if found else 'no way in two clicks'}")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
