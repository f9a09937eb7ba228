"""Check that links between built pages lead somewhere, their anchors too: python docs/links.py docs/_build/html"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := found.get(key))}
        for key in ("href", "src"):
            if found.get(key):
                self.links.add(found[key] or "")


def broken(root: Path) -> list[str]:
    """Return 'page: link' for every link within the pages that leads nowhere."""
    files = [p for p in root.rglob("*.html") if "_modules" not in p.parts]
    pages = {p.resolve(): Page(p.read_text(encoding="utf-8")) for p in files}
    wrong = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            if not target.exists():
                wrong.append(f"{path.relative_to(root.resolve())}: {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{path.relative_to(root.resolve())}: {link} (no such anchor)")
    return wrong


def main() -> None:
    wrong = broken(Path(sys.argv[1]))
    print(*wrong, sep="\n", file=sys.stderr)
    print(f"{len(wrong)} broken links between the pages")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
