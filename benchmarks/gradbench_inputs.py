"""The inputs of GradBench's workloads, made as its evaluations make them: one small and one large of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SEED = 31337
# GradBench's text, if the checkout has it; else letters drawn at random, with as many bits.
TEXT = Path("evals/lstm/data/lstm_full.txt")


def gmm(d: int, k: int, n: int = 1000) -> dict[str, Any]:
    rng = np.random.default_rng(seed=SEED)
    triangle = d * (d - 1) // 2
    return {
        "d": d, "k": k, "n": n, "x": rng.normal(size=(n, d)).tolist(), "m": 0, "gamma": 1.0,
        "alpha": rng.normal(size=k).tolist(), "mu": rng.uniform(size=(k, d)).tolist(),
        "q": rng.normal(size=(k, d)).tolist(), "l": rng.normal(size=(k, triangle)).tolist(),
    }  # fmt: skip


def ba(root: Path, number: int) -> dict[str, Any]:
    lines = next((root / "evals" / "ba" / "data").glob(f"ba{number}_*.txt")).read_text().splitlines()
    n, m, p = map(int, lines[0].split())
    camera, point, feature = ([float(v) for v in lines[k].split()] for k in (1, 2, 4))
    return {"n": n, "m": m, "p": p, "cam": camera, "x": point, "w": float(lines[3]), "feat": feature}


def hand_model(folder: Path) -> dict[str, Any]:
    bones = [line.split(":") for line in (folder / "bones.txt").read_text().splitlines()]
    numbers = np.array([[float(v) for v in bone[2:34]] for bone in bones]).reshape(-1, 2, 4, 4)
    vertices = [line.split(":") for line in (folder / "vertices.txt").read_text().splitlines()]
    positions, weights = np.ones((len(vertices), 4)), np.zeros((len(vertices), len(bones)))
    for k, vertex in enumerate(vertices):
        positions[k, :3] = [float(v) for v in vertex[:3]]
        for j in range(int(vertex[8])):
            weights[k, int(vertex[9 + 2 * j])] = float(vertex[10 + 2 * j])
    return {
        "bone_count": len(bones), "bone_names": [bone[0] for bone in bones],
        "parents": [int(bone[1]) for bone in bones], "base_relatives": numbers[:, 0].tolist(),
        "inverse_base_absolutes": numbers[:, 1].tolist(), "base_positions": positions.tolist(),
        "weights": weights.tolist(), "is_mirrored": False,
        "triangles": np.loadtxt(folder / "triangles.txt", int, delimiter=":").tolist(),
    }  # fmt: skip


def ht(root: Path, variant: str, number: int) -> dict[str, Any]:
    folder = root / "evals" / "ht" / "data" / variant
    lines = [line.split() for line in next(folder.glob(f"hand{number}_*.txt")).read_text().splitlines()]
    count, pose = int(lines[0][0]), int(lines[0][1])
    measured, us = lines[1 : 1 + count], lines[1 + count : 1 + 2 * count]
    return {
        "theta": [float(line[0]) for line in lines[1 + 2 * count : 1 + 2 * count + pose]],
        "data": {
            "model": hand_model(folder / "model"), "correspondences": [int(line[0]) for line in measured],
            "points": [[float(v) for v in line[1:]] for line in measured],
        },
        "us": [[float(v) for v in line] for line in us],
    }  # fmt: skip


def kmeans(k: int, n: int, d: int) -> dict[str, Any]:
    points = np.random.default_rng(SEED).random((n, d)).tolist()
    return {"points": points, "centroids": points[-k:]}


def text_of(root: Path, length: int) -> str:
    if (root / TEXT).exists():
        return (root / TEXT).read_text(encoding="utf8")[:length]
    letters = np.random.default_rng(SEED).integers(32, 123, length - 1)
    return "’" + "".join(map(chr, letters))


def lstm(root: Path, layers: int, length: int) -> dict[str, Any]:
    text = text_of(root, length)
    bits = math.ceil(math.log2(max(map(ord, text))))
    rng = np.random.default_rng(SEED)
    return {
        "main_params": rng.random((2 * layers, 4 * bits)).tolist(), "extra_params": rng.random((3, bits)).tolist(),
        "state": rng.random((2 * layers, bits)).tolist(),
        "sequence": [[float(bit) for bit in f"{ord(letter):0{bits}b}"] for letter in text],
    }  # fmt: skip


def uniform(count: int) -> list[float]:
    return np.random.default_rng(SEED).random(count).tolist()


def inputs(root: Path) -> Iterator[tuple[str, str, str, Callable[[], dict[str, Any]]]]:
    """Yield workload, function, size, and what makes the input."""
    for d, k in ((10, 25), (64, 50)):
        yield "gmm", "jacobian", f"d={d}, k={k}", lambda d=d, k=k: gmm(d, k)
    for number in (1, 7):
        yield "ba", "jacobian", f"ba{number}", lambda number=number: ba(root, number)
    for variant, number in (("complicated_small", 1), ("complicated_big", 8)):
        yield "ht", "jacobian", f"{variant[12:]} {number}", lambda v=variant, number=number: ht(root, v, number)
    for k, n, d in ((10, 1000, 8), (100, 10_000, 16)):
        yield "kmeans", "dir", f"k={k}, n={n}, d={d}", lambda k=k, n=n, d=d: kmeans(k, n, d)
    for layers, length in ((2, 1024), (6, 4096)):
        yield "lstm", "jacobian", f"l={layers}, c={length}", lambda k=layers, c=length: lstm(root, k, c)
    for n, s in ((1000, 10), (10_000, 100)):
        yield "ode", "gradient", f"n={n}, s={s}", lambda n=n, s=s: {"x": uniform(n), "s": s}
    for n in (128, 16_392):
        yield "llsq", "gradient", f"n={n}, m=128", lambda n=n: {"x": uniform(128), "n": n}
    for n in (2500, 1_280_000):
        yield "lse", "gradient", f"n={n}", lambda n=n: {"x": uniform(n)}
    for ell in (5, 8):
        yield "det", "gradient", f"l={ell}", lambda ell=ell: {"A": uniform(ell * ell), "ell": ell}
    for way in ("rr", "ff", "fr", "rf"):
        yield "particle", way, way, lambda: {"w": 0.0}
    for way in ("rr", "ff", "fr", "rf"):
        yield "saddle", way, way, lambda: {"start": [1.0, 1.0]}


def growing(root: Path) -> Iterator[tuple[str, str, str, int, Callable[[], dict[str, Any]]]]:
    """Yield workload, function, size, how much there is to do, and what makes the input: from small to large.

    The searches have no size.
    """
    for k in (5, 10, 20, 40, 80):
        yield "gmm", "jacobian", f"d=10, k={k}", 1000 * k, lambda k=k: gmm(10, k)
    for number in (1, 2, 3, 4, 5):
        given = ba(root, number)
        yield "ba", "jacobian", f"ba{number}, {given['p']} observations", given["p"], lambda given=given: given
    for number in (1, 3, 5, 7):
        given = ht(root, "complicated_small", number)
        count = len(given["us"])
        yield "ht", "jacobian", f"{count} points", count, lambda given=given: given
    for n in (250, 1000, 4000, 16_000, 64_000):
        yield "kmeans", "dir", f"k=10, n={n}, d=8", n, lambda n=n: kmeans(10, n, 8)
    for length in (64, 256, 1024, 4096):
        yield "lstm", "jacobian", f"l=2, c={length}", length, lambda c=length: lstm(root, 2, c)
    for s in (5, 20, 80, 320):
        yield "ode", "gradient", f"n=1000, s={s}", s, lambda s=s: {"x": uniform(1000), "s": s}
    for n in (128, 1024, 8192, 65_536):
        yield "llsq", "gradient", f"n={n}, m=128", n, lambda n=n: {"x": uniform(128), "n": n}
    for n in (2500, 20_000, 160_000, 1_280_000):
        yield "lse", "gradient", f"n={n}", n, lambda n=n: {"x": uniform(n)}
    for ell in (3, 4, 5, 6, 7, 8):
        yield "det", "gradient", f"l={ell}", math.factorial(ell), lambda ell=ell: {"A": uniform(ell**2), "ell": ell}
