"""The time of a training step on many ranks, by a simulation of its messages: python benchmarks/loggp.py

The model is LogGP (A. Alexandrov et al., 1995): a message of m bytes takes ``2 o + L + m G`` seconds, and to reduce it
``m R`` more. An all_reduce takes the quicker of two algorithms, as MPI's libraries choose: recursive doubling, and a
reduce_scatter followed by an all_gather, both by halves. The backward pass hands over one bucket of gradients after the
other; the network takes one at a time, while the pass goes on.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Network:
    """The constants of a network, in seconds and seconds per byte."""

    name: str
    latency: float  # L, with both ends' overhead o: what a message of no bytes takes
    gap: float  # G, per byte
    reduce: float  # R, per byte that is added up

    def all_reduce(self, nbytes: float, ranks: int) -> float:
        if ranks == 1:
            return 0.0
        steps = math.ceil(math.log2(ranks))
        doubling = steps * (self.latency + nbytes * (self.gap + self.reduce))
        part = nbytes * (ranks - 1) / ranks
        halves = 2 * steps * self.latency + part * (2 * self.gap + self.reduce)
        return min(doubling, halves)


def step_time(
    network: Network, ranks: int, forward: float, backward: float, buckets: list[float], rest: float
) -> float:  # fmt: skip
    """Return the time of a step: `buckets` are bytes in the order in which they are ready, `rest` is no model's."""
    now, free = forward, 0.0
    for nbytes in buckets:
        now += backward * nbytes / sum(buckets)
        free = max(free, now) + network.all_reduce(nbytes, ranks)
    return max(now, free) + rest


def scaling(network: Network, facts: dict, most: int = 1024) -> list[dict]:
    """Return strong and weak scaling from 1 to `most` ranks: the speed-up, and the efficiency."""
    forward, backward, rest = facts["forward"], facts["backward"], facts["rest"]
    buckets = facts["buckets"]
    one = step_time(network, 1, forward, backward, buckets, rest)
    rows, n = [], 1
    while n <= most:
        strong = step_time(network, n, forward / n, backward / n, buckets, rest)
        weak = step_time(network, n, forward, backward, buckets, rest)
        rows.append({"ranks": n, "strong": one / strong, "weak": one / weak})
        n *= 2
    return rows


CLUSTER = Network("InfiniBand, 2 us and 20 GB/s (assumed)", 2e-6, 1 / 20e9, 1 / 10e9)
_WIDE, _HIGH, _LEFT, _BASE = 640, 300, 60, 250


def picture(series: list[tuple[str, list[dict]]]) -> str:
    """Return a drawing (SVG) of the efficiency over the number of ranks; strong scaling is dashed."""
    colours = ["#1f77b4", "#d62728", "#2ca02c"]

    def x(n: int) -> float:
        return _LEFT + (_WIDE - _LEFT - 20) * math.log2(n) / 10

    def y(e: float) -> float:
        return _BASE - 210 * e

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{_WIDE}" height="{_HIGH}" fill="white"/>',
    ]
    for e in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<line x1="{_LEFT}" y1="{y(e)}" x2="{_WIDE - 20}" y2="{y(e)}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y(e) + 4}" text-anchor="end">{e:.0%}</text>')
    for k in range(11):
        parts.append(f'<text x="{x(2**k)}" y="{_BASE + 18}" text-anchor="middle">{2**k}</text>')
    axis = "ranks (full: weak scaling, dashed: strong)"
    parts.append(f'<text x="{_WIDE / 2}" y="{_HIGH - 8}" text-anchor="middle">{axis}</text>')
    for (name, rows), colour in zip(series, colours, strict=False):
        for kind, dash in (("weak", ""), ("strong", ' stroke-dasharray="5 4"')):
            points = " ".join(
                f"{x(r['ranks']):.1f},{y(r[kind] / (r['ranks'] if kind == 'strong' else 1)):.1f}" for r in rows
            )
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        at = 24 + 16 * [n for n, _ in series].index(name)
        parts.append(f'<text x="{_LEFT + 12}" y="{_BASE - 60 + at - 24}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", default=HERE / "distributed.json", help="what benchmarks/distributed.py measured")
    parser.add_argument("--picture", help="where to write the drawing")
    args = parser.parse_args()
    facts = json.loads(Path(args.facts).read_text())
    measured = Network("shared memory (measured)", facts["latency"], facts["gap"], facts["reduce"])
    series = [(network.name, scaling(network, facts)) for network in (measured, CLUSTER)]
    for name, rows in series:
        print(name)
        for row in rows:
            print(f"  {row['ranks']:5d} ranks: strong {row['strong']:8.1f}x, weak {row['weak']:6.1%}")
    if args.picture:
        Path(args.picture).write_text(picture(series))


if __name__ == "__main__":
    main()
