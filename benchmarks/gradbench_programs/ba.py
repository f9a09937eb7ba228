"""Bundle adjustment: what each camera sees of each point less what was measured, and its sparse Jacobian."""

import numpy as np

import fad


def rotated(rotation, point):
    """Return a point rotated about an axis, whose length is the angle, by Rodrigues' formula."""
    (a, b, c), (x, y, z) = rotation, point
    square = a * a + b * b + c * c
    turns = square > 0
    safe = np.where(turns, square, 1.0)
    angle = np.sqrt(safe)
    cosine = np.where(turns, np.cos(angle), 1.0)
    sine = np.where(turns, np.sin(angle) / angle, 1.0)
    along = (a * x + b * y + c * z) * np.where(turns, (1 - np.cos(angle)) / safe, 0.0)
    return (
        x * cosine + (b * z - c * y) * sine + a * along,
        y * cosine + (c * x - a * z) * sine + b * along,
        z * cosine + (a * y - b * x) * sine + c * along,
    )


def reprojection(camera, point, weight, feature):
    """Return the weighted error of one observation."""
    x, y, z = rotated(camera[:3], point - camera[3:6])
    x, y = x / z, y / z
    square = x * x + y * y
    scale = camera[6] * (1 + camera[9] * square + camera[10] * square**2)
    image = np.stack([x * scale + camera[7], y * scale + camera[8]])
    return weight * (image - feature)


def errors(cameras, points, weights, observations, features):
    seen = fad.vmap(reprojection)(cameras[observations[:, 0]], points[observations[:, 1]], weights, features)
    return seen, 1 - weights**2


def rows_and_columns(n, m, observations):
    """Return where the Jacobian's rows begin, and the columns of its numbers."""
    count = len(observations)
    camera = 11 * observations[:, :1] + np.arange(11)
    point = 11 * n + 3 * observations[:, 1:] + np.arange(3)
    weight = 11 * n + 3 * m + np.arange(count)
    block = np.concatenate([camera, point, weight[:, None]], axis=1)
    columns = np.concatenate([np.repeat(block, 2, axis=0).ravel(), weight])
    rows = np.concatenate([15 * np.arange(2 * count + 1), 30 * count + np.arange(1, count + 1)])
    return rows, columns


def sparse_jacobian(cameras, points, weights, observations, features):
    """Return the Jacobian's rows, columns and numbers: all errors of observations, then those of the weights."""
    derivative = fad.vmap(fad.jacrev(reprojection, argnums=(0, 1, 2)))
    by_camera, by_point, by_weight = derivative(
        cameras[observations[:, 0]], points[observations[:, 1]], weights, features
    )
    blocks = np.concatenate([by_camera, by_point, by_weight[:, :, None]], axis=2)
    numbers = np.concatenate([blocks.ravel(), -2 * weights])
    return *rows_and_columns(len(cameras), len(points), observations), numbers


def prepare(given):
    n, m, p = given["n"], given["m"], given["p"]
    observations = np.stack([np.arange(p) % n, np.arange(p) % m], axis=1)
    repeated = [np.tile(np.array(given[name], dtype=float), (times, 1))
                for name, times in (("cam", n), ("x", m), ("feat", p))]  # fmt: skip
    cameras, points, features = repeated
    return cameras, points, np.full(p, float(given["w"])), observations, features


objective = fad.jit(errors)
jacobian = fad.jit(sparse_jacobian)


def answer(output):
    """Return the first observation's part, and the last number: all observations are the same."""
    if len(output) == 2:
        seen, of_weights = output
        return {
            "reproj_err": {"elements": seen[0].tolist(), "repeated": len(seen)},
            "w_err": {"element": float(of_weights[0]), "repeated": len(of_weights)},
        }
    return {name: [*part[:30].tolist(), part[-1].item()]
            for name, part in zip(("rows", "cols", "vals"), output, strict=True)}  # fmt: skip
