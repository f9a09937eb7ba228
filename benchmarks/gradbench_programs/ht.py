"""Hand tracking: measured points less those of a skinned hand, and the Jacobian by the pose and the points' places."""

from typing import NamedTuple

import numpy as np

import fad


class Hand(NamedTuple):
    """A hand's bones, its vertices with the weights of the bones, its triangles, and the points measured on them."""

    base_relatives: np.ndarray
    inverse_base_absolutes: np.ndarray
    base_positions: np.ndarray
    weights: np.ndarray
    triangles: np.ndarray
    points: np.ndarray
    correspondences: np.ndarray


def rotations(angles):
    """Return the rotations by the angles about x, z and y of each bone."""
    x, z, y = angles.T
    about_x, about_y, about_z = (np.zeros((len(angles), 3, 3)) for _ in range(3))
    about_x[:, 0, 0] = about_y[:, 1, 1] = about_z[:, 2, 2] = 1.0
    about_x[:, 1, 1] = about_x[:, 2, 2] = np.cos(x)
    about_x[:, 2, 1] = np.sin(x)
    about_x[:, 1, 2] = -np.sin(x)
    about_y[:, 0, 0] = about_y[:, 2, 2] = np.cos(y)
    about_y[:, 0, 2] = np.sin(y)
    about_y[:, 2, 0] = -np.sin(y)
    about_z[:, 0, 0] = about_z[:, 1, 1] = np.cos(z)
    about_z[:, 1, 0] = np.sin(z)
    about_z[:, 0, 1] = -np.sin(z)
    return about_z @ about_y @ about_x


def rotation_about(vector):
    """Return the rotation about an axis, whose length is the angle."""
    angle = np.linalg.norm(vector)
    if angle < 1e-4:
        return np.eye(3)
    x, y, z = vector / angle
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)


def finger_angles(theta, bones):
    """Return three angles a bone: the first of a finger's three bones has two that move, the others one."""
    fingers = theta[6:].reshape(5, 4)
    angles = np.zeros((bones, 3))
    angles[2::4, :2] = fingers[:, :2]
    angles[3::4, 0] = fingers[:, 2]
    angles[4::4, 0] = fingers[:, 3]
    return angles


def vertices(theta, hand, parents, mirrored):
    """Return where the vertices of a hand are."""
    bones = len(parents)
    turned = np.zeros((bones, 4, 4))
    turned[:, :3, :3] = rotations(finger_angles(theta, bones))
    turned[:, 3, 3] = 1.0
    relative = hand.base_relatives @ turned
    absolute = []
    for bone, parent in enumerate(parents):
        absolute.append(relative[bone] if parent == -1 else absolute[parent] @ relative[bone])
    transforms = (np.stack(absolute) @ hand.inverse_base_absolutes)[:, :3]
    weighted = hand.weights[:, :, None] * hand.base_positions[:, None, :]
    positions = weighted.reshape(-1, 4 * bones) @ np.swapaxes(transforms, 1, 2).reshape(4 * bones, 3)
    if mirrored:
        positions = positions * np.array([-1.0, 1.0, 1.0])
    return positions @ rotation_about(theta[:3]).T + theta[3:6]


def misfits(theta, us, hand, parents, mirrored):
    """Return the measured points less those of the hand; `us` says where in its triangle each lies."""
    positions = vertices(theta, hand, parents, mirrored)
    if us is None:
        return (hand.points - positions[hand.correspondences]).ravel()
    first, second, third = hand.triangles[hand.correspondences].T
    u, v = us[:, :1], us[:, 1:]
    return (hand.points - (u * positions[first] + v * positions[second] + (1 - u - v) * positions[third])).ravel()


def columns(theta, us, hand, *kind):
    """Return the derivatives by the places in the triangles, two columns for all points, and by the pose."""
    of_pose = fad.jacfwd(misfits)(theta, us, hand, *kind)
    if us is None:
        return of_pose
    along = lambda d: fad.jvp(lambda us: misfits(theta, us, hand, *kind), (us,), (np.broadcast_to(d, us.shape),))[1]
    return np.concatenate([fad.vmap(along)(np.eye(2)).T, of_pose], axis=1)


def prepare(given):
    model = given["data"]["model"]
    floats = {k: np.array(model[k], dtype=float)
              for k in ("base_relatives", "inverse_base_absolutes", "base_positions", "weights")}  # fmt: skip
    hand = Hand(
        **floats, triangles=np.array(model["triangles"]), points=np.array(given["data"]["points"], dtype=float),
        correspondences=np.array(given["data"]["correspondences"]),
    )  # fmt: skip
    us = np.array(given["us"], dtype=float) if len(given.get("us", ())) else None
    return np.array(given["theta"], dtype=float), us, hand, tuple(model["parents"]), model["is_mirrored"]


objective = fad.jit(misfits, static_argnums=(3, 4))
jacobian = fad.jit(columns, static_argnums=(3, 4))


def answer(output):
    return output.tolist()
