"""Optimisers: the pure form equals the stateful one, is differentiable, and what does not fit changes nothing."""

import numpy as np
import pytest

import fad
from fad import nn, optim
from fad.optim.wolfe import Point, strong_wolfe
from fad.testing import check_grads

ALL = {
    "sgd": lambda p=None: optim.SGD(p, lr=0.1),
    "momentum": lambda p=None: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.1),
    "nesterov": lambda p=None: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p=None: optim.Adam(p, lr=0.1, weight_decay=0.1),
    "adamw": lambda p=None: optim.AdamW(p, lr=optim.schedules.cosine(0.1, 10)),
    "rmsprop": lambda p=None: optim.RMSProp(p, lr=0.1, momentum=0.9, centered=True),
    "adagrad": lambda p=None: optim.Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.5),
    "amsgrad": lambda p=None: optim.Adam(p, lr=0.1, amsgrad=True),
    "lion": lambda p=None: optim.Lion(p, lr=0.1, weight_decay=0.1),
    "adadelta": lambda p=None: optim.Adadelta(p, eps=0.1),
    "adamax": lambda p=None: optim.Adamax(p, lr=0.1),
    "nadam": lambda p=None: optim.NAdam(p, lr=0.1, momentum_decay=0.1),
    "radam": lambda p=None: optim.RAdam(p, lr=0.1, betas=(0.8, 0.9), weight_decay=0.1, decoupled_weight_decay=True),
    "rprop": lambda p=None: optim.Rprop(p, lr=0.1),
    "asgd": lambda p=None: optim.ASGD(p, lr=0.1, lambd=0.1, t0=2, weight_decay=0.1),
    "lbfgs": lambda p=None: optim.LBFGS(p, lr=0.3, history_size=3),
}


ELEMENTWISE = [name for name in ALL if name != "lbfgs"]


def params():
    return {
        "a": np.array([[1.0, -2.0], [0.5, 3.0]]),
        "b": [np.array(2.0), np.array([1.0, 2.0], np.float32)],
        "z": np.array([1 + 2j, 0.5 - 1j]),
    }


def loss(p):
    b, c = p["b"]
    return np.sum(np.sqrt(1 + p["a"] ** 2)) + np.sum(np.sin(b) * c**2) + np.sum(np.abs(p["z"] - 1) ** 2)


@pytest.mark.parametrize("name", ALL)
def test_the_pure_form_equals_the_stateful_one(name):
    p, q = params(), params()
    opt, pure = ALL[name](p), ALL[name]()
    state = pure.init(q)
    for _ in range(5):
        opt.step(fad.grad(loss)(p))
        q, state = pure.update(fad.grad(loss)(q), state, q)
    assert state["steps"] == opt.steps == 5
    for x, y in zip(fad.tree.leaves(p), fad.tree.leaves(q), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-5 if x.dtype == np.float32 else 1e-12)


SMOOTH = ["momentum", "nesterov", "adam", "rmsprop", "adagrad", "adadelta", "nadam", "asgd", "lbfgs"]


@pytest.mark.parametrize("name", SMOOTH)
def test_the_pure_form_is_differentiable(name):
    opt = ALL[name]()
    target = np.array([1.0, -1.0, 2.0])

    def after(p):
        state = opt.init(p)
        for _ in range(3):
            p, state = opt.update(fad.grad(lambda p: np.sum((p - target) ** 4))(p), state, p)
        return np.sum(p**2)

    check_grads(after, (np.array([0.3, 0.4, 0.5]),), 1)


def test_the_pure_form_maps_over_an_ensemble():
    opt = optim.Adam(lr=0.1)
    ps = np.arange(6.0).reshape(3, 2)
    update = lambda p: opt.update(2 * p, opt.init(p), p)[0]
    np.testing.assert_allclose(fad.vmap(update)(ps), [update(p) for p in ps], rtol=1e-13)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_large_model_is_updated_in_pieces_as_a_small_one(name):
    g = np.random.default_rng(0).standard_normal((3, 200_000))
    whole, parts = np.ones(200_000), [np.ones(50_000) for _ in range(4)]
    one, four = ALL[name](whole), ALL[name](parts)
    for row in g:
        one.step(row)
        four.step(list(row.reshape(4, -1)))
    expected = np.ones(1000)
    small = ALL[name](expected)
    for row in g:
        small.step(row[:1000])
    np.testing.assert_allclose(whole, np.concatenate(parts), rtol=1e-13)
    np.testing.assert_allclose(whole[:1000], expected, rtol=1e-13)


def test_a_gradient_that_does_not_fit_changes_nothing():
    model = nn.Linear(3, 2, key=0)
    before = model.state_dict()
    opt = optim.Adam(model)
    with pytest.raises(fad.errors.TreeMismatchError, match="3 leaves, but there are 2 parameters"):
        opt.step([np.ones(2)] * 3)
    with pytest.raises(fad.errors.ShapeMismatchError, match=r"leaf 0 of the gradient has shape \(2,\)"):
        opt.step([np.ones(2), np.ones((2, 3))])
    assert opt.steps == 0
    assert all(np.array_equal(before[k], v) for k, v in model.state_dict().items())


def test_a_model_frozen_after_the_optimiser_was_made_is_an_error():
    model = nn.Sequential(nn.Linear(2, 2, key=0), nn.Linear(2, 2, key=1))
    opt = optim.Adam(model)
    model[0].freeze()
    with pytest.raises(fad.errors.TreeMismatchError, match="make a new optimiser"):
        opt.step(fad.grad(lambda m: np.sum(m(np.ones((1, 2)))))(model))


def test_what_cannot_be_changed_in_place_is_refused():
    with pytest.raises(TypeError, match="pure form"):
        optim.SGD([1.0, 2.0])
    frozen = np.ones(2)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match="read-only"):
        optim.SGD(frozen)
    with pytest.raises(TypeError, match="without a model"):
        optim.SGD().step(np.ones(2))


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="lr must be"):
        optim.SGD(np.ones(2), lr=-1.0)
    with pytest.raises(ValueError, match="nesterov needs momentum"):
        optim.SGD(np.ones(2), nesterov=True)
    with pytest.raises(ValueError, match="betas"):
        optim.Adam(np.ones(2), betas=(0.9, 1.0))
    with pytest.raises(ValueError, match="rho must lie"):
        optim.Adadelta(np.ones(2), rho=1.5)
    with pytest.raises(ValueError, match="etas must be"):
        optim.Rprop(np.ones(2), etas=(1.2, 0.5))


@pytest.mark.parametrize("name", ALL)
def test_a_loaded_state_continues_bit_for_bit(name):
    p = params()
    opt = ALL[name](p)
    for _ in range(3):
        opt.step(fad.grad(loss)(p))
    q = fad.tree.map(np.copy, p)
    other = ALL[name](q)
    other.load_state_dict(opt.state_dict())
    for _ in range(3):
        opt.step(fad.grad(loss)(p))
        other.step(fad.grad(loss)(q))
    for x, y in zip(fad.tree.leaves(p), fad.tree.leaves(q), strict=True):
        assert np.array_equal(x, y)


def test_a_state_of_another_model_is_refused():
    opt = optim.Adam(np.ones(3))
    with pytest.raises(ValueError, match="other parameters"):
        opt.load_state_dict(optim.Adam(np.ones(4)).state_dict())


# --- L-BFGS -------------------------------------------------------------------------------------------------------


def test_lbfgs_finds_the_minimum_of_rosenbrocks_function():
    x = np.full(10, -1.0)
    value = optim.LBFGS(x).minimize(lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), steps=500)
    assert value < 1e-14
    np.testing.assert_allclose(x, 1.0, atol=1e-7)


def test_lbfgs_turns_back_where_the_loss_is_not_a_number():
    x = np.array([1e-3, 40.0])
    with np.errstate(invalid="ignore"):
        value = optim.LBFGS(x).minimize(lambda x: np.sum(x - np.log(x)))
    np.testing.assert_allclose(x, 1.0, rtol=1e-6)
    assert value == pytest.approx(2.0, rel=1e-12)


def test_each_point_of_the_strong_wolfe_search_is_low_and_flat_enough():
    def f(x):
        return np.cos(3.0 * x) + 0.1 * x * x

    for first in (0.01, 0.5, 3.0, 40.0):
        at = lambda t: Point(t, float(f(0.3 + t)), float(fad.grad(f)(0.3 + t)), None)
        start = at(0.0)
        found = strong_wolfe(at, start, first, size=1.0, tolerance=1e-9, most=25)
        assert found.value <= start.value + 1e-4 * found.length * start.slope
        assert abs(found.slope) <= 0.9 * abs(start.slope)


def test_lbfgs_takes_models_and_complex_numbers():
    z = [np.array([1 + 1j, 2.0 + 0j]), np.array(3.0)]
    optim.LBFGS(z).minimize(lambda z: np.sum(np.abs(z[0] - 1j) ** 2) + (z[1] - 2.0) ** 4, tol=1e-12)
    np.testing.assert_allclose(z[0], 1j, atol=1e-6)
    np.testing.assert_allclose(z[1], 2.0, atol=1e-3)


def test_lbfgs_saves_its_state(tmp_path):
    f = lambda x: np.sum(x**4 + x**2)
    x, y = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    one, other = optim.LBFGS(x, lr=0.5), optim.LBFGS(y, lr=0.5)
    for _ in range(3):
        one.step(fad.grad(f)(x))
        other.step(fad.grad(f)(y))
    fad.save(tmp_path / "state", one.state_dict())
    again = optim.LBFGS(y, lr=0.5)
    again.load_state_dict(fad.load(tmp_path / "state"))
    one.step(fad.grad(f)(x))
    again.step(fad.grad(f)(y))
    assert np.array_equal(x, y)


def test_lbfgs_moves_real_and_complex_parameters_each_by_its_own_gradient():
    p = {"a": np.array([1.0, 2.0]), "z": np.array([1 + 1j, 2.0 - 1j])}
    before, g = fad.tree.map(np.copy, p), fad.grad(lambda p: np.sum(p["a"] ** 2) + np.sum(np.abs(p["z"]) ** 2))(p)
    optim.LBFGS(p, lr=1e-3).step(g)
    share = 1e-3 / (6.0 + 10.0)  # the first step: the gradient, divided by the sum of its sizes
    np.testing.assert_allclose(p["a"], before["a"] - share * g["a"])
    np.testing.assert_allclose(p["z"], before["z"] - share * np.conj(g["z"]))


def test_the_pure_form_of_lbfgs_runs_in_a_scan_and_under_jit():
    f = lambda x: np.sum((x - np.arange(4.0)) ** 2 * np.arange(1.0, 5.0))
    opt = optim.LBFGS(lr=1.0, history_size=5)
    step = lambda carry, _: (opt.update(fad.grad(f)(carry[0]), carry[1], carry[0]), None)

    def descend(x):
        return fad.scan(step, (x, opt.init(x)), None, 12)[0][0]

    np.testing.assert_allclose(descend(np.zeros(4)), np.arange(4.0), atol=1e-6)
    np.testing.assert_allclose(fad.jit(descend)(np.zeros(4)), np.arange(4.0), atol=1e-6)
    np.testing.assert_allclose(fad.vmap(descend)(np.zeros((2, 4))), np.arange(4.0) + np.zeros((2, 1)), atol=1e-6)


def test_lion_follows_the_formula_of_its_paper():
    # Algorithm 2 of X. Chen et al., Symbolic Discovery of Optimization Algorithms, written out on its own.
    g = np.random.default_rng(0).standard_normal((20, 5))
    b1, b2, lr, decay = 0.9, 0.99, 0.01, 0.3
    theta, m = np.ones(5), np.zeros(5)
    w = np.ones(5)
    opt = optim.Lion(w, lr=lr, betas=(b1, b2), weight_decay=decay)
    for row in g:
        c = b1 * m + (1 - b1) * row
        theta = theta - lr * (np.sign(c) + decay * theta)
        m = b2 * m + (1 - b2) * row
        opt.step(row)
        np.testing.assert_allclose(w, theta, rtol=1e-14)


def _nadam(g, lr=0.1, b1=0.9, b2=0.999, decay=4e-3):
    x, m, v, product = 1.0, 0.0, 0.0, 1.0
    for t, row in enumerate(g, 1):
        mu, after = (b1 * (1 - 0.5 * 0.96 ** (n * decay)) for n in (t, t + 1))
        product *= mu
        m, v = b1 * m + (1 - b1) * row, b2 * v + (1 - b2) * row**2
        ahead = after * m / (1 - product * after) + (1 - mu) * row / (1 - product)
        x -= lr * ahead / (np.sqrt(v / (1 - b2**t)) + 1e-8)
        yield x


def _radam(g, lr=0.1, b1=0.9, b2=0.999):
    x, m, v, end = 1.0, 0.0, 0.0, 2 / (1 - b2) - 1
    for t, row in enumerate(g, 1):
        m, v = b1 * m + (1 - b1) * row, b2 * v + (1 - b2) * row**2
        length, mean = end - 2 * t * b2**t / (1 - b2**t), m / (1 - b1**t)
        if length > 5:
            r = np.sqrt((length - 4) * (length - 2) * end / ((end - 4) * (end - 2) * length))
            mean *= r * np.sqrt(1 - b2**t) / (np.sqrt(v) + 1e-8)
        x -= lr * mean
        yield x


def _rprop(g, lr=0.1):
    x, before, size = 1.0, 0.0, lr
    for row in g:
        size = min(max(size * (1.2 if row * before > 0 else 0.5 if row * before < 0 else 1.0), 1e-6), 50.0)
        row = 0.0 if row * before < 0 else row
        x, before = x - np.sign(row) * size, row
        yield x


@pytest.mark.parametrize("name", ["NAdam", "RAdam", "Rprop"])
def test_a_path_follows_the_formula_of_its_paper(name):
    g, w = np.random.default_rng(0).standard_normal(30), np.ones(1)
    opt = getattr(optim, name)(w, lr=0.1)
    for row, expected in zip(g, {"NAdam": _nadam, "RAdam": _radam, "Rprop": _rprop}[name](g), strict=True):
        opt.step(np.array([row]))
        np.testing.assert_allclose(w, expected, rtol=1e-12)


def test_asgd_keeps_the_mean_of_the_parameters_that_came_after_its_start():
    w, path = np.array([1.0]), []
    opt = optim.ASGD(w, lr=0.1, lambd=0.0, t0=2)
    for _ in range(8):
        opt.step(2 * w)
        path.append(w.copy())
    np.testing.assert_allclose(opt.state_dict()["slots"][0][0], np.mean(path[3:], axis=0), rtol=1e-12)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_maximize_goes_the_opposite_way(name):
    down, up = ALL[name](), ALL[name]()
    up.maximize = True
    p = params()
    g = fad.grad(loss)(p)
    one, _ = up.update(fad.tree.map(lambda x: -x, g), up.init(p), p)
    other, _ = down.update(g, down.init(p), p)
    for x, y in zip(fad.tree.leaves(one), fad.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(x, y)


# --- schedules, clipping, averages, the loop -------------------------------------------------------------------------


def test_schedules_start_and_end_where_they_should():
    s = optim.schedules
    cases = {
        s.constant(0.5): (0.5, 0.5),
        s.linear(1.0, 0.1, 10): (1.0, 0.1),
        s.cosine(1.0, 10, 0.2): (1.0, 0.2),
        s.exponential(1.0, 0.5, 10): (1.0, 0.5),
        s.step_decay(1.0, 0.1, 10): (1.0, 0.1),
        s.warmup(4, s.linear(1.0, 0.0, 6)): (0.25, 0.0),
        s.one_cycle(1.0, 11): (1 / 25, 4e-6),
    }
    for f, (start, end) in cases.items():
        np.testing.assert_allclose([f(0), f(10)], [start, end], rtol=1e-12)
    assert max(s.one_cycle(1.0, 20)(i) for i in range(20)) == 1.0
    assert s.one_cycle(1.0, 20, warm=0.0)(0) == 1.0
    after = s.linear(1.0, 0.0, 6)
    assert [s.warmup(4, after)(4 + i) for i in range(7)] == [after(i) for i in range(7)]
    assert [s.joined([s.constant(2.0), after], [3])(i) for i in range(2, 6)] == [2.0, *(after(i) for i in range(3))]
    for boundaries in ([], [2, 1], [1, 2]):
        with pytest.raises(ValueError, match="n - 1 boundaries"):
            s.joined([s.constant(1.0)] * (3 if boundaries == [2, 1] else 2), boundaries)


def test_an_optimiser_follows_its_schedule():
    x = np.zeros(1)
    opt = optim.SGD(x, lr=lambda step: 10.0**-step)
    for _ in range(3):
        opt.step(np.array([1.0]))
    np.testing.assert_allclose(x, -1.11)


def test_clipping_keeps_the_direction_and_short_gradients():
    g = {"a": np.array([3.0, 0.0]), "b": np.array(4.0)}
    clipped, norm = optim.clip_by_global_norm(g, 2.5)
    assert norm == 5.0
    np.testing.assert_allclose(clipped["a"], [1.5, 0.0])
    assert optim.clip_by_global_norm(g, 6.0)[0] is g
    np.testing.assert_allclose(optim.clip_by_value(g, 1.0)["a"], [1.0, 0.0])
    with pytest.raises(FloatingPointError, match="cannot be clipped"):
        optim.clip_by_global_norm([np.array([np.nan])], 1.0)


def test_both_parts_of_complex_gradients_are_clipped():
    z = np.array([3 + 4j, -0.5 - 2j], np.complex64)
    for wrap in (lambda f: f, fad.jit):
        (clipped,) = wrap(lambda z: optim.clip_by_value([z], 1.0))(z)
        np.testing.assert_array_equal(clipped, [1 + 1j, -0.5 - 1j])
        assert clipped.dtype == z.dtype


def test_an_average_of_weights_takes_over_buffers():
    model = nn.BatchNorm1d(2)
    ema = optim.EMA(model, decay=0.9)
    model(np.array([[1.0, 2.0], [3.0, 5.0]]))
    model.weight += 1.0
    ema.update()
    np.testing.assert_allclose(ema.model.weight, 1.1)
    np.testing.assert_array_equal(ema.model.running_mean, model.running_mean)


def test_a_nan_loss_stops_training_and_names_the_step():
    w = np.array([1.0])
    data = [np.array([1.0]), np.array([2.0]), np.array([np.nan]), np.array([3.0])]
    seen = []
    with pytest.raises(optim.NonFiniteLossError, match="nan at step 2"):
        optim.fit(
            lambda w, x: np.sum((w - x) ** 2), w, optim.SGD(w, lr=0.1), data, after_step=lambda h: seen.append(w.copy())
        )
    assert len(seen) == 2
    assert np.array_equal(w, seen[-1])


def test_fit_trains_and_the_history_plots_itself(tmp_path):
    x = np.linspace(-1, 1, 32)[:, None]
    model = nn.Sequential(nn.Linear(1, 8, key=0), nn.Tanh(), nn.Linear(8, 1, key=1))
    loss = lambda m, x, y: np.mean((m(x) - y) ** 2)
    batches = fad.data.batches((x, np.sin(3 * x)), 8, key=0)
    history = optim.fit(loss, model, optim.Adam(model, lr=0.02), batches, epochs=60, clip=1.0)
    assert len(history) == 240
    assert history.last("loss") < 0.1 * history["loss"][0]
    pytest.importorskip("matplotlib", reason="History.plot draws with it")
    figure = history.plot(tmp_path / "loss.png")
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert len(figure.axes) == 1
    assert "240 steps" in repr(history)


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.RMSProp(np.ones(2), alpha=2.0),
        lambda: optim.RMSProp(np.ones(2), alpha=-0.1),
        lambda: optim.RMSProp(np.ones(2), momentum=-1.0),
        lambda: optim.SGD(np.ones(2), momentum=-1.0),
    ],
)
def test_a_rate_of_forgetting_that_averages_nothing_is_refused(make):
    with pytest.raises(ValueError, match=r"alpha must lie in|momentum must be"):
        make()


@pytest.mark.parametrize("setting", [("lr", 0.5), ("momentum", 0.9), ("weight_decay", 0.1), ("maximize", True)])
def test_a_setting_that_changes_between_calls_of_a_compiled_step_is_read_again(setting):
    opt = optim.SGD(lr=0.1, momentum=0.5)
    step = fad.jit(lambda w, state: opt.update(2 * w, state, w))
    w = np.array([1.0, 2.0])
    state = opt.init(w)
    for _ in range(3):
        w, state = step(w, state)
    setattr(opt, *setting)
    np.testing.assert_array_equal(step(w, state)[0], opt.update(2 * w, state, w)[0])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lr", [
    optim.schedules.cosine(0.1, 30),
    optim.schedules.warmup(5, optim.schedules.cosine(0.1, 30)),
    optim.schedules.one_cycle(0.1, 40),
    optim.schedules.joined([optim.schedules.linear(0.1, 0.2, 5), optim.schedules.exponential(0.2, 0.9)], [10]),
], ids=repr)  # fmt: skip
def test_a_compiled_step_follows_its_schedule_with_few_recordings(lr, dtype):
    opt = optim.Adam(lr=lr)
    step = fad.jit(lambda w, state: opt.update(2 * w, state, w))
    w = expected = np.array([1.0, 2.0], dtype)
    state, plain = opt.init(w), opt.init(expected)
    for _ in range(40):
        w, state = step(w, state)
        expected, plain = opt.update(2 * expected, plain, expected)
    assert w.dtype == dtype
    np.testing.assert_allclose(w, expected, rtol=1e-12 if dtype == "float64" else 1e-6)
    assert step.cache_info().misses <= 4


def test_gradients_of_each_example_are_clipped_in_vmap():
    g = {"a": np.array([[3.0, 4.0], [0.1, 0.2]], "float32"), "z": np.array([1j, 0.1])}
    clip = lambda g: optim.clip_by_global_norm(g, 1.0)
    for run in (fad.vmap(clip), fad.jit(fad.vmap(clip))):
        clipped, norms = run(g)
        for i in range(2):
            expected, norm = clip({k: x[i] for k, x in g.items()})
            np.testing.assert_allclose(norms[i], norm, rtol=1e-6)
            for k, x in expected.items():
                assert clipped[k].dtype == g[k].dtype
                np.testing.assert_allclose(clipped[k][i], x, rtol=1e-6)
