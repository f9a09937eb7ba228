"""
A robot's arm draws a heart
===========================

Which angles of the joints put the hand of a robot where it should be? The position of the hand is a chain of
rotations; its Jacobian by the angles tells how to turn the joints, and how well the hand can move at all in each
place. The lengths are those of Universal Robots' UR5 (the maker's table of Denavit and Hartenberg's parameters).
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

# offset along the axis, length, and twist, of six joints: metres and radians
LINKS = [
    (0.089159, 0.0, np.pi / 2), (0.0, -0.425, 0.0), (0.0, -0.39225, 0.0),
    (0.10915, 0.0, np.pi / 2), (0.09465, 0.0, -np.pi / 2), (0.0823, 0.0, 0.0),
]  # fmt: skip


def joints(angles):
    """Return the places of the base, the joints and the hand: seven rows."""
    frame, places = np.eye(4), [np.zeros(3)]
    for angle, (offset, length, twist) in zip(angles, LINKS, strict=True):
        c, s, ct, st = np.cos(angle), np.sin(angle), np.cos(twist), np.sin(twist)
        turn = np.eye(4)
        turn[:3] = [[c, -s * ct, s * st, length * c], [s, c * ct, -c * st, length * s], [0.0, st, ct, offset]]
        frame = frame @ turn
        places.append(frame[:3, 3])
    return np.stack(places)


hand = lambda angles: joints(angles)[-1]
jacobian = fad.jacobian(hand)

# %%
# The curve to draw, and for each of its points a few damped Newton steps from the angles of the point before.
t = np.linspace(0, 2 * np.pi, 90)
side, up = 16 * np.sin(t) ** 3, 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
heart = np.stack([0.45 + 0 * t, 0.017 * side, 0.45 + 0.017 * up], axis=1)
angles, poses = np.array([0.2, -1.2, 1.6, -1.0, 1.2, 0.0]), []
for _ in range(40):  # to the first point
    j = jacobian(angles)
    angles = angles + j.T @ np.linalg.solve(j @ j.T + 1e-4 * np.eye(3), 0.3 * (heart[0] - hand(angles)))
for point in heart:
    for _ in range(4):
        j = jacobian(angles)
        angles = angles + j.T @ np.linalg.solve(j @ j.T + 1e-6 * np.eye(3), point - hand(angles))
    poses.append(angles)
poses = np.array(poses)
drawn = fad.vmap(hand)(poses)
print(f"the hand is at most {1e6 * np.max(np.linalg.norm(drawn - heart, axis=1)):.2f} micrometres off")

# %%
# Where can the hand move freely? The volume of the ellipsoid of its velocities, from the Jacobian, along the curve.
free = fad.vmap(lambda a: np.sqrt(np.linalg.det(jacobian(a) @ jacobian(a).T)))(poses)
figure = plt.figure(figsize=(11, 4.8))
ax = figure.add_subplot(121, projection="3d")
for k in range(0, len(t), 9):
    ax.plot(*joints(poses[k]).T, "-o", color=plt.colormaps["viridis"](k / len(t)), alpha=0.5, linewidth=3, markersize=4)
ax.plot(*drawn.T, color="C1", linewidth=3.5)
ax.set(title="The arm along its curve", xlim=(-0.2, 0.7), ylim=(-0.45, 0.45), zlim=(0, 0.8), box_aspect=(1, 1, 0.9))
ax.view_init(22, -40)
ax.tick_params(labelsize=7)
top, bottom = figure.add_subplot(222), figure.add_subplot(224)
top.plot(np.degrees(poses), label=[f"joint {i + 1}" for i in range(6)])
top.set(ylabel="degrees", title="Angles of the joints")
top.legend(ncols=3, fontsize=7)
bottom.fill_between(np.arange(len(t)), 1000 * free, color="C2", alpha=0.4)
bottom.set(xlabel="point of the curve", title="Freedom of the hand (volume of its velocities)", ylim=(0, None))
plt.show()
