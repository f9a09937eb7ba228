"""Draw what imports what: docs/imports-fad.svg and docs/imports-compile.svg.

    python docs/draw_imports.py

Boxes stand in the order that tests/test_architecture.py holds, what imports above what is imported. An arc leads from
the upper to the lower box, as thick as there are files that import; an import against the order would be a red one on
the other side. Pages and tables of modules are not drawn from memory: everything is read from the source.
"""

from __future__ import annotations

import ast
import html
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent / "fad"
HEIGHT, GAP, WIDTH, STEP = 44, 12, 560, 15


def layers() -> list[list[str]]:
    """Return the layers of the architecture test, the lowest first."""
    tree = ast.parse((DOCS.parent / "tests" / "test_architecture.py").read_text(encoding="utf-8"))
    named = {ast.unparse(n.targets[0]): n.value for n in tree.body if isinstance(n, ast.Assign)}
    return ast.literal_eval(named["LAYERS"])


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules of fad that a file imports, anywhere in its text, but those for type checkers."""
    tree, found = ast.parse(path.read_text(encoding="utf-8")), set()
    guarded = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    skipped = {id(n) for guard in guarded for n in ast.walk(guard)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{a.name}" for a in node.names]
        for name in names:
            if name.startswith("fad."):
                name = name.removeprefix("fad.")
                while name not in known:
                    name = name.rpartition(".")[0]
                found.add(name)
    return found


def first_sentence(name: str, known: dict[str, Path]) -> str:
    path = known.get(name)
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path else None
    return (text or "").split("\n\n")[0].replace("\n", " ").replace("``", "").replace("`", "").rstrip(".:")


def picture(order: list[str], box_of: dict[str, str], known: dict[str, Path], prefix: str = "") -> str:
    """Return a drawing of boxes from top to bottom, `box_of` telling the box of each module."""
    files = Counter(box_of.values())
    edges: Counter = Counter()
    for module, path in known.items():
        if module in box_of:
            others = {box_of[o] for o in imports(path, known) if o in box_of}
            edges.update((box_of[module], other) for other in others if other != box_of[module])
    place = {name: k for k, name in enumerate(order)}
    longest = max([place[b] - place[a] for a, b in edges] + [1])
    wrong = [e for e in edges if place[e[1]] < place[e[0]]]
    left = 30 + (60 if wrong else 0)
    width, height = left + WIDTH + 40 + STEP * longest, len(order) * (HEIGHT + GAP) + GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    middle = lambda name: GAP + place[name] * (HEIGHT + GAP) + HEIGHT / 2
    for (a, b), n in sorted(edges.items(), key=lambda e: place[e[0][0]] - place[e[0][1]]):
        up = place[b] < place[a]
        x, reach = (left, -40) if up else (left + WIDTH, STEP * (place[b] - place[a]) + 12)
        y, z = middle(a) + 6, middle(b) - 6
        colour = "#d00000" if up else "#0072b2"
        lines.append(
            f'<path d="M{x} {y} C{x + reach} {y} {x + reach} {z} {x} {z}" fill="none" stroke="{colour}" '
            f'stroke-opacity="0.45" stroke-width="{min(5.0, 0.6 + 0.22 * n):.1f}"><title>{a} imports {b}: {n} files'
            "</title></path>"
        )
        lines.append(f'<circle cx="{x}" cy="{z}" r="2.5" fill="{colour}"/>')
    for name in order:
        y = GAP + place[name] * (HEIGHT + GAP)
        count = f"{files[name]} file{'s' if files[name] != 1 else ''}"
        said = html.escape(first_sentence(prefix + name, known))
        said = said if len(said) < 88 else said[:85].rsplit(" ", 1)[0] + " …"
        lines += [
            f'<rect x="{left}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="#f4f4f4" stroke="#888"/>',
            f'<text x="{left + 10}" y="{y + 18}" font-size="14" font-weight="bold">{html.escape(name)}</text>',
            f'<text x="{left + WIDTH - 10}" y="{y + 18}" font-size="11" text-anchor="end" fill="#555">{count}</text>',
            f'<text x="{left + 10}" y="{y + 35}" font-size="11" fill="#333">{said}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def draw() -> dict[str, str]:
    """Return the text of each picture, by its file's name."""
    known = modules()
    entries = [name.rstrip(".") for layer in layers() for name in layer]
    box_of = {m: m.split(".")[0] for m in known if m}
    order = list(dict.fromkeys(e.split(".")[0] for e in entries))
    of_compile = {}
    for m in known:
        parts = m.split(".")
        if parts[0] == "compile" and len(parts) > 1:
            of_compile[m] = parts[1]
    stages = list(dict.fromkeys(e.split(".")[1] for e in entries if e.startswith("compile.")))
    return {
        "imports-fad.svg": picture(order[::-1], box_of, known),
        "imports-compile.svg": picture(stages[::-1], of_compile, known, "compile."),
    }


if __name__ == "__main__":
    for name, text in draw().items():
        (DOCS / name).write_text(text, encoding="utf-8")
        print(DOCS / name)
