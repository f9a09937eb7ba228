"""The pictures of docs/distributed.md: mpiexec -n 2 python benchmarks/distributed_picture.py

`distributed-types.svg` shows which values are the same on all ranks, forward and backward. `distributed-step.svg` is
the profiler's trace of one step of training on each rank: gradients are sent while the backward pass still runs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fad
from fad import distributed as D
from fad import nn
from fad.nn import functional as F

DOCS = Path(__file__).parent.parent / "docs"
SAME, OWN, FORWARD, BACKWARD, SENT, WAIT = "#cfe8cf", "#fde3c8", "#4c78a8", "#f58518", "#54a24b", "#e45756"


def box(x, y, wide, text, colour):
    return (
        f'<rect x="{x}" y="{y}" width="{wide}" height="34" rx="5" fill="{colour}" stroke="#555"/>'
        f'<text x="{x + wide / 2}" y="{y + 21}" text-anchor="middle">{text}</text>'
    )


def arrow(x1, y1, x2, y2, text="", colour="#333"):
    label = f'<text x="{(x1 + x2) / 2}" y="{(y1 + y2) / 2 - 5}" text-anchor="middle" fill="{colour}">{text}</text>'
    line = f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" marker-end="url(#tip)"/>'
    return line + (label if text else "")


def svg(wide, high, parts):
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#333"/></marker></defs>'
    )
    view = f'viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="13"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {view}>'
    return "\n".join([head, tip, f'<rect width="{wide}" height="{high}" fill="white"/>', *parts, "</svg>\n"])


def types():
    """Draw w -> vary -> loss of each rank -> all_reduce -> loss, and the cotangents of the backward pass."""
    parts = [
        box(20, 75, 70, "w", SAME), box(150, 75, 70, "vary", SAME),
        box(290, 20, 150, "loss(w, x) of rank 0", OWN), box(290, 130, 150, "loss(w, x) of rank 1", OWN),
        box(510, 75, 90, "all_reduce", SAME), box(660, 75, 70, "loss", SAME),
        arrow(90, 92, 150, 92), arrow(220, 88, 290, 40), arrow(220, 96, 290, 145), arrow(440, 40, 510, 86),
        arrow(440, 147, 510, 98), arrow(600, 92, 660, 92),
        '<text x="375" y="200" text-anchor="middle">backward: vary adds the cotangents of all ranks up, '
        "all_reduce hands one to each</text>",
        f'<rect x="250" y="214" width="16" height="12" fill="{SAME}" stroke="#555"/><text x="272" y="225">the same on '
        "all ranks</text>",
        f'<rect x="420" y="214" width="16" height="12" fill="{OWN}" stroke="#555"/><text x="442" y="225">each rank\'s '
        "own</text>",
    ]  # fmt: skip
    return svg(750, 240, parts)


def traced(comm):
    """Return the events of one step on this rank: (name, kind, start, end)."""
    with nn.seed(0):
        layers = [m for _ in range(4) for m in (nn.Linear(512, 512, dtype="float32"), nn.ReLU())]
        model = nn.Sequential(*layers)
    rng = np.random.default_rng(int(comm.rank))
    batch = rng.normal(size=(256, 512)).astype("float32"), rng.integers(0, 512, 256)
    step = D.value_and_grad(lambda m, x, y: F.cross_entropy(m(x), y), comm, bucket_bytes=1 << 20)
    step(model, *batch)
    found = []
    for _ in range(10):
        comm.barrier()
        with fad.profiler.profile() as seen:
            step(model, *batch)
        events = [(e.name, e.kind, e.start, e.end) for e in seen.events]
        found.append((events[-1][3] - events[0][2], events))
    times = np.max(comm.exchange([t for t, _ in found]), axis=0)
    return found[int(np.argmin(times))][1]


def timeline(ranks):
    """Draw what each rank does over the time of a step."""
    start = min(e[2] for events in ranks for e in events)
    end = max(e[3] for events in ranks for e in events)
    wide = 640

    def at(t):
        return 90 + wide * (t - start) / (end - start)

    parts = []
    for r, events in enumerate(ranks):
        y = 20 + 80 * r
        parts.append(f'<text x="10" y="{y + 22}">rank {r}</text>')
        under_way = []
        for name, kind, a, b in events:
            if name == "distributed.start_all_reduce":
                under_way.append(a)
            elif name == "distributed.wait_all_reduce" and under_way:
                left = at(under_way.pop(0))
                parts.append(
                    f'<rect x="{left:.1f}" y="{y + 36}" width="{max(1.0, at(b) - left):.1f}" height="10" '
                    f'fill="{SENT}" fill-opacity="0.45" stroke="{SENT}"/>'
                )
                parts.append(bar(at(a), at(b), y, WAIT))
            elif not name.startswith("distributed"):
                parts.append(bar(at(a), at(b), y, BACKWARD if kind == "backward" else FORWARD))
    y = 20 + 80 * len(ranks)
    names = ((FORWARD, "forward"), (BACKWARD, "backward"), (SENT, "a bucket on its way"), (WAIT, "waiting"))
    for k, (colour, name) in enumerate(names):
        parts.append(f'<rect x="{90 + 150 * k}" y="{y}" width="14" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{110 + 150 * k}" y="{y + 11}">{name}</text>')
    parts.append(f'<text x="{90 + wide}" y="{y + 34}" text-anchor="end">{1e3 * (end - start):.1f} ms</text>')
    return svg(750, y + 44, parts)


def bar(a, b, y, colour):
    return f'<rect x="{a:.1f}" y="{y}" width="{max(0.6, b - a):.1f}" height="30" fill="{colour}"/>'


def main():
    comm = D.init("mpi")
    ranks = comm.exchange(traced(comm))
    if comm.rank == 0:
        (DOCS / "distributed-types.svg").write_text(types())
        (DOCS / "distributed-step.svg").write_text(timeline(ranks))


if __name__ == "__main__":
    main()
