"""GradBench's protocol: messages for small inputs, and answers beside plain NumPy, closed forms and differences."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

PROTOCOL = Path(__file__).parents[2] / "benchmarks" / "gradbench_programs" / "protocol.py"
RNG = np.random.default_rng(0)


def converse(*messages):
    """Return the answers of a process to messages, each with its number as id."""
    lines = "".join(json.dumps({"id": k} | message) + "\n" for k, message in enumerate(messages))
    done = subprocess.run([sys.executable, str(PROTOCOL)], input=lines, capture_output=True, text=True, timeout=200)
    assert not done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == list(range(len(messages)))
    return answers


def outputs(module, functions, given, runs=2):
    """Return what functions of a module give, the second run's result included."""
    asked = given | {"min_runs": runs, "min_seconds": 0}
    messages = [{"kind": "evaluate", "module": module, "function": f, "input": asked} for f in functions]
    answers = converse(*messages)
    for answer in answers:
        assert answer["success"], answer.get("error")
        assert [t["name"] for t in answer["timings"]] == ["evaluate"] * runs
    return [answer["output"] for answer in answers]


def slopes(function, x, h=1e-4):
    """Return the Jacobian of a function of a vector by extrapolated central differences, a column each number."""

    def central(direction, h):
        return (np.asarray(function(x + h * direction)) - np.asarray(function(x - h * direction))) / (2 * h)

    return np.stack([(4 * central(d, h / 2) - central(d, h)) / 3 for d in np.eye(x.size)], axis=-1)


def test_it_says_its_name_and_loads_what_there_is():
    start, known, unknown, wrong, analysis = converse(
        {"kind": "start", "eval": "lse"},
        {"kind": "define", "module": "lse"},
        {"kind": "define", "module": "os"},
        {"kind": "evaluate", "module": "lse", "function": "prepare", "input": {"x": [1.0]}},
        {"kind": "analysis", "of": 1, "valid": True},
    )
    assert start == {"id": 0, "tool": "fad"}
    assert known == {"id": 1, "success": True}
    assert not unknown["success"]
    assert "no module 'os'; there are gmm, ba, ht" in unknown["error"]
    assert not wrong["success"]
    assert "no function 'prepare' in 'lse'" in wrong["error"]
    assert analysis == {"id": 4}


def test_an_input_that_lacks_a_part_is_answered_with_the_error_and_the_next_message_as_usual():
    failed, fine = converse(
        {"kind": "evaluate", "module": "lse", "function": "primal", "input": {}},
        {"kind": "evaluate", "module": "lse", "function": "primal", "input": {"x": [1.0, 1.0]}},
    )
    assert not failed["success"]
    assert "KeyError: 'x'" in failed["error"]
    assert fine["output"] == pytest.approx(1 + np.log(2), rel=1e-14)


def test_lse_is_the_logarithm_and_its_gradient_the_softmax():
    x = RNG.standard_normal(50)
    value, gradient = outputs("lse", ("primal", "gradient"), {"x": x.tolist()})
    assert value == pytest.approx(np.log(np.sum(np.exp(x))), rel=1e-13)
    np.testing.assert_allclose(gradient, np.exp(x) / np.sum(np.exp(x)), rtol=1e-12)


def test_llsq_is_half_the_squares_of_a_polynomial_less_the_sign():
    x, n = RNG.random(6), 9
    value, gradient = outputs("llsq", ("primal", "gradient"), {"x": x.tolist(), "n": n})
    t = -1 + 2 * np.arange(n) / (n - 1)
    powers = t[:, None] ** np.arange(6)
    residual = np.sign(t) - powers @ x
    assert value == pytest.approx(residual @ residual / 2, rel=1e-13)
    np.testing.assert_allclose(gradient, -powers.T @ residual, rtol=1e-11, atol=1e-13)


def test_det_is_the_determinant_and_its_gradient_the_cofactors():
    a = RNG.random((4, 4))
    value, gradient = outputs("det", ("primal", "gradient"), {"A": a.ravel().tolist(), "ell": 4})
    assert value == pytest.approx(np.linalg.det(a), rel=1e-12)
    np.testing.assert_allclose(gradient, (np.linalg.det(a) * np.linalg.inv(a).T).ravel(), rtol=1e-10)


def test_ode_is_exact_for_four_components():
    x = 0.5 + RNG.random(4)
    value, gradient = outputs("ode", ("primal", "gradient"), {"x": x.tolist(), "s": 10})
    exact = np.cumprod(x * 2 / np.arange(1, 5))
    np.testing.assert_allclose(value, exact, rtol=1e-12)
    np.testing.assert_allclose(gradient, exact[-1] / x, rtol=1e-12)


def test_kmeans_steps_from_the_means_to_the_centroids():
    points = RNG.random((40, 3))
    centroids = points[-4:]
    cost, step = outputs("kmeans", ("cost", "dir"), {"points": points.tolist(), "centroids": centroids.tolist()})
    squares = np.sum((points[:, None] - centroids) ** 2, axis=2)
    nearest = np.argmin(squares, axis=1)
    means = np.stack([points[nearest == k].mean(axis=0) for k in range(4)])
    assert cost == pytest.approx(np.sum(np.min(squares, axis=1)), rel=1e-13)
    np.testing.assert_allclose(step, centroids - means, rtol=1e-10, atol=1e-14)


def log_posterior(alpha, mu, q, l, x, m, gamma):
    """Return gmm's objective by a loop over points and components, from SciPy's densities."""
    from scipy.special import logsumexp, multigammaln
    from scipy.stats import multivariate_normal

    k, d = mu.shape
    terms, prior, n = [], 0.0, d + m + 1
    for j in range(k):
        factor = np.diag(np.exp(q[j]))
        columns, rows = np.triu_indices(d, 1)
        factor[rows, columns] = l[j]
        precision = factor.T @ factor
        terms.append(alpha[j] + multivariate_normal(mu[j], np.linalg.inv(precision)).logpdf(x))
        prior += n * d * (np.log(gamma) - np.log(2) / 2) - multigammaln(n / 2, d) + m * np.sum(q[j])
        prior -= gamma**2 / 2 * np.trace(precision)
    return np.sum(logsumexp(terms, axis=0)) - len(x) * logsumexp(alpha) + prior


def test_gmm_is_scipys_mixture_and_its_gradient_that_of_differences():
    d, k, n = 3, 2, 7
    parts = {"alpha": RNG.standard_normal(k), "mu": RNG.random((k, d)), "q": 0.3 * RNG.standard_normal((k, d)),
             "l": 0.3 * RNG.standard_normal((k, 3))}  # fmt: skip
    x = RNG.standard_normal((n, d))
    fixed = {"x": x.tolist(), "m": 1, "gamma": 1.2, "d": d, "k": k, "n": n}
    given = fixed | {name: part.tolist() for name, part in parts.items()}
    value, gradient = outputs("gmm", ("objective", "jacobian"), given)
    assert value == pytest.approx(log_posterior(**parts, x=x, m=1, gamma=1.2), rel=1e-10)
    for name, part in parts.items():
        of_part = lambda flat, name=name, part=part: log_posterior(
            **parts | {name: flat.reshape(part.shape)}, x=x, m=1, gamma=1.2
        )
        np.testing.assert_allclose(np.ravel(gradient[name]), slopes(of_part, part.ravel()), rtol=1e-7, atol=1e-7)


def lstm_loss(main, extra, state, sequence):
    """Return lstm's loss, number by number."""
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    state, total = state.copy(), 0.0
    for now, following in pairwise(sequence):
        x = now * extra[0]
        for k in range(0, len(state), 2):
            (wf, wi, wo, wc), (bf, bi, bo, bc) = main[k].reshape(4, -1), main[k + 1].reshape(4, -1)
            hidden, cell = state[k], state[k + 1]
            cell = cell * sigmoid(x * wf + bf) + sigmoid(hidden * wi + bi) * np.tanh(hidden * wc + bc)
            hidden = sigmoid(x * wo + bo) * np.tanh(cell)
            state[k], state[k + 1], x = hidden, cell, hidden
        y = x * extra[1] + extra[2]
        total += following @ (y - np.log(2 + np.sum(np.exp(y))))
    return -total / (sequence.shape[1] * (len(sequence) - 1))


def test_lstm_is_the_loss_of_a_loop_over_characters_and_layers():
    main, extra, state = RNG.random((4, 12)), RNG.random((3, 3)), RNG.random((4, 3))
    sequence = RNG.integers(0, 2, (6, 3)).astype(float)
    given = {"main_params": main, "extra_params": extra, "state": state, "sequence": sequence}
    given = {name: part.tolist() for name, part in given.items()}
    value, gradient = outputs("lstm", ("objective", "jacobian"), given)
    of_flat = lambda flat: lstm_loss(flat[:48].reshape(4, 12), flat[48:].reshape(3, 3), state, sequence)
    flat = np.concatenate([main.ravel(), extra.ravel()])
    assert value == pytest.approx(of_flat(flat), rel=1e-13)
    np.testing.assert_allclose(gradient, slopes(of_flat, flat), rtol=1e-8, atol=1e-9)


def seen(flat, feature):
    """Return ba's error of one observation: camera, point and weight in one vector."""
    from scipy.spatial.transform import Rotation

    camera, point, weight = flat[:11], flat[11:14], flat[14]
    x, y, z = Rotation.from_rotvec(camera[:3]).apply(point - camera[3:6])
    square = (x**2 + y**2) / z**2
    image = np.array([x, y]) / z * (1 + camera[9] * square + camera[10] * square**2)
    return weight * (image * camera[6] + camera[7:9] - feature)


def test_ba_has_a_block_of_differences_for_each_observation():
    n, m, p = 2, 3, 5
    camera = np.array([0.3, -0.2, 0.5, 0.1, 0.2, -4.0, 20.0, 1.0, -2.0, 0.02, 0.003])
    point, weight, feature = np.array([0.7, -0.4, 1.1]), 0.4, np.array([3.0, 5.0])
    given = {"n": n, "m": m, "p": p, "cam": camera.tolist(), "x": point.tolist(), "w": weight,
             "feat": feature.tolist()}  # fmt: skip
    errors, jacobian = outputs("ba", ("objective", "jacobian"), given)
    flat = np.concatenate([camera, point, [weight]])
    np.testing.assert_allclose(errors["reproj_err"]["elements"], seen(flat, feature), rtol=1e-12)
    assert errors["reproj_err"]["repeated"] == errors["w_err"]["repeated"] == p
    assert errors["w_err"]["element"] == pytest.approx(1 - weight**2)
    block = slopes(lambda flat: seen(flat, feature), flat)
    np.testing.assert_allclose(jacobian["vals"], [*block.ravel(), -2 * weight], rtol=1e-7, atol=1e-7)
    columns = [*range(11), *range(22, 25), 22 + 9]
    assert jacobian["cols"] == [*columns, *columns, 22 + 9 + p - 1]
    assert jacobian["rows"] == [*range(0, 2 * p * 15 + 1, 15), *range(2 * p * 15 + 1, 2 * p * 15 + p + 1)][:30] + [
        2 * p * 15 + p
    ]


def hand_misfits(theta, us, model, data):
    """Return ht's objective, bone by bone and point by point."""
    from scipy.spatial.transform import Rotation

    bones, angles = len(model["parents"]), np.zeros((len(model["parents"]), 3))
    for finger in range(5):
        first, x, y, z = 2 + 4 * finger, *theta[6 + 4 * finger : 10 + 4 * finger][[0, 2, 3]]
        angles[first, :2] = x, theta[7 + 4 * finger]
        angles[first + 1, 0], angles[first + 2, 0] = y, z
    absolute = []
    for bone in range(bones):
        turned = np.eye(4)
        turned[:3, :3] = Rotation.from_euler("xyz", angles[bone][[0, 2, 1]]).as_matrix()
        relative = model["base_relatives"][bone] @ turned
        parent = model["parents"][bone]
        absolute.append(relative if parent == -1 else absolute[parent] @ relative)
    positions = sum(
        (absolute[k] @ model["inverse_base_absolutes"][k] @ model["base_positions"].T)[:3] * model["weights"][:, k]
        for k in range(bones)
    ).T
    positions = Rotation.from_rotvec(theta[:3]).apply(positions) + theta[3:6]
    misfits = []
    for k, triangle in enumerate(model["triangles"][data["correspondences"]]):
        u, v = us[k]
        a, b, c = positions[triangle]
        misfits.append(data["points"][k] - (u * a + v * b + (1 - u - v) * c))
    return np.concatenate(misfits)


def test_ht_has_two_columns_for_the_places_in_triangles_and_then_those_of_the_pose():
    bones, vertices, count = 22, 10, 3
    model = {
        "parents": [-1, *RNG.integers(0, np.arange(1, bones)).tolist()],
        "base_relatives": RNG.standard_normal((bones, 4, 4)) * 0.3,
        "inverse_base_absolutes": RNG.standard_normal((bones, 4, 4)) * 0.3,
        "base_positions": RNG.standard_normal((vertices, 4)), "weights": RNG.random((vertices, bones)),
        "triangles": np.array([[0, 1, 2], [3, 4, 5], [6, 7, 9]]),
    }  # fmt: skip
    for of_bones in ("base_relatives", "inverse_base_absolutes"):
        model[of_bones][:, 3] = [0.0, 0.0, 0.0, 1.0]
    data = {"correspondences": np.array([1, 0, 2]), "points": RNG.standard_normal((count, 3))}
    theta, us = 0.3 * RNG.standard_normal(26), RNG.random((count, 2))
    listed = lambda of: {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in of.items()}
    given = {"theta": theta.tolist(), "us": us.tolist(),
             "data": listed(data) | {"model": listed(model) | {"is_mirrored": False}}}  # fmt: skip
    value, jacobian = outputs("ht", ("objective", "jacobian"), given)
    of = lambda flat: hand_misfits(flat[2:], us + flat[:2], model, data)
    flat = np.concatenate([np.zeros(2), theta])
    np.testing.assert_allclose(value, of(flat), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(jacobian, slopes(of, flat), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("module", "given", "expected"),
    [("particle", {"w": 0.0}, 0.2071918746486116), ("saddle", {"start": [1.0, 1.0]}, [8.246324826140356e-06] * 4)],
)
def test_searches_end_where_gradbench_says_whatever_the_modes(module, given, expected):
    forward, reverse = outputs(module, ("ff", "rr"), given)
    np.testing.assert_allclose(forward, expected, atol=1e-6)
    np.testing.assert_allclose(reverse, forward, atol=1e-9)
