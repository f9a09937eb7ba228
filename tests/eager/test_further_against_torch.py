"""Schedules of learning rates, distributions, data loaders and files of the eager API, beside PyTorch's."""

import numpy as np
import pytest

import fad.eager

torch = pytest.importorskip("torch")
FACES = (fad.eager, torch)
rng = np.random.default_rng(0)

# --- schedules --------------------------------------------------------------------------------------------------------

SCHEDULERS = {
    "step": ("StepLR", {"step_size": 3, "gamma": 0.5}),
    "milestones": ("MultiStepLR", {"milestones": [2, 5], "gamma": 0.3}),
    "exponential": ("ExponentialLR", {"gamma": 0.9}),
    "constant": ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    "linear": ("LinearLR", {"start_factor": 0.2, "end_factor": 0.8, "total_iters": 6}),
    "cosine": ("CosineAnnealingLR", {"T_max": 7, "eta_min": 0.01}),
    "restarts": ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    "one cycle": ("OneCycleLR", {"max_lr": 0.4, "total_steps": 12}),
    "one straight cycle": (
        "OneCycleLR", {"max_lr": [0.4, 0.2], "epochs": 4, "steps_per_epoch": 3, "anneal_strategy": "linear"}
    ),
    "polynomial": ("PolynomialLR", {"total_iters": 6, "power": 2.0}),
    "multiplied": ("MultiplicativeLR", {"lr_lambda": lambda n: 0.9 + 0.01 * n}),
    "up and down": ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 3, "step_size_down": 2}),
    "up and down, lower": (
        "CyclicLR", {"base_lr": [0.01, 0.02], "max_lr": [0.3, 0.2], "step_size_up": 2, "mode": "triangular2"}
    ),
    "up and down, each step lower": (
        "CyclicLR", {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 2, "mode": "exp_range", "gamma": 0.9}
    ),
    "lambda": ("LambdaLR", {"lr_lambda": lambda n: 1.0 / (n + 1)}),
    "lambda for each": ("LambdaLR", {"lr_lambda": [lambda n: 1.0 / (n + 1), lambda n: 0.9**n]}),
}  # fmt: skip


def trained(api, rule, make, metrics=None):
    """Return rates and weights along some steps with a scheduler."""
    xs = [api.tensor([1.0, -2.0], requires_grad=True), api.tensor([0.5], requires_grad=True)]
    options = {"momentum": 0.9} if rule == "SGD" else {}
    opt = getattr(api.optim, rule)([{"params": xs[:1]}, {"params": xs[1:], "lr": 0.05}], lr=0.1, **options)
    scheduler, path = make(api.optim.lr_scheduler, opt), []
    for i in range(10):
        path.append([g["lr"] for g in opt.param_groups] + [v for x in xs for v in x.detach().tolist()])
        opt.zero_grad()
        sum((x * x).sum() for x in xs).backward()
        opt.step()
        scheduler.step(*(() if metrics is None else (metrics[i],)))
        assert scheduler.get_last_lr() == [g["lr"] for g in opt.param_groups]
    return path


@pytest.mark.parametrize("rule", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_training_under_each_schedule_follows_torch(name, rule):
    kind, options = SCHEDULERS[name]
    paths = [trained(api, rule, lambda s, opt: getattr(s, kind)(opt, **options)) for api in FACES]
    np.testing.assert_allclose(*paths, rtol=2e-6, atol=1e-7)


TOGETHER = {
    "warm-up and decay": lambda s, o: [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)],
    "decay and milestones": lambda s, o: [s.ExponentialLR(o, 0.9), s.MultiStepLR(o, [3, 6], 0.1)],
    "cosine and steps": lambda s, o: [s.CosineAnnealingLR(o, 20, 0.01), s.StepLR(o, 4, 0.5)],
    "line and power": lambda s, o: [s.LinearLR(o, 0.2, 1.0, 4), s.PolynomialLR(o, 20)],
}


class InTurn:
    """Schedulers that a program steps itself."""

    def __init__(self, schedulers):
        self.schedulers = schedulers

    def step(self):
        for scheduler in self.schedulers:
            scheduler.step()

    def get_last_lr(self):
        return self.schedulers[-1].get_last_lr()


@pytest.mark.parametrize("name", TOGETHER)
def test_schedules_of_one_optimiser_act_together_as_in_torch(name):
    chained = [trained(f, "SGD", lambda s, opt: s.ChainedScheduler(TOGETHER[name](s, opt))) for f in FACES]
    np.testing.assert_allclose(*chained, rtol=2e-6, atol=1e-7)
    in_turn = trained(fad.eager, "SGD", lambda s, opt: InTurn(TOGETHER[name](s, opt)))
    np.testing.assert_allclose(in_turn, chained[0], rtol=1e-12)


def test_a_rate_that_the_program_changed_is_kept_by_the_schedule_as_in_torch():
    paths = []
    for api in FACES:
        opt = api.optim.SGD([api.zeros(1, requires_grad=True)], lr=1.0)
        scheduler = api.optim.lr_scheduler.StepLR(opt, 2, 0.5)
        paths.append([])
        for i in range(6):
            if i == 3:
                opt.param_groups[0]["lr"] = 0.01
            opt.step()
            scheduler.step()
            paths[-1].append(opt.param_groups[0]["lr"])
    np.testing.assert_allclose(*paths, rtol=1e-12)


def test_schedules_one_after_another_follow_torch():
    def make(s, opt):
        return s.SequentialLR(opt, [s.LinearLR(opt, 0.1, 1.0, 4), s.CosineAnnealingLR(opt, 5)], milestones=[4])

    np.testing.assert_allclose(*[trained(api, "SGD", make) for api in FACES], rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("by_hand", [0, 1, 2, 4])
@pytest.mark.parametrize("after", ["ExponentialLR", "StepLR", "CosineAnnealingLR"])
def test_schedules_one_after_another_go_on_from_a_rate_changed_by_hand_as_in_torch(after, by_hand):
    paths = []
    for api in FACES:
        s = api.optim.lr_scheduler
        opt = api.optim.SGD([api.zeros(1, requires_grad=True)], lr=1.0)
        settings = {"ExponentialLR": (0.5,), "StepLR": (2, 0.5), "CosineAnnealingLR": (5,)}[after]
        scheduler = s.SequentialLR(opt, [s.LinearLR(opt, 0.1, 1.0, 2), getattr(s, after)(opt, *settings)], [2])
        paths.append([])
        for i in range(7):
            opt.step()
            scheduler.step()
            if i == by_hand:
                opt.param_groups[0]["lr"] *= 0.1
            paths[-1].append(opt.param_groups[0]["lr"])
    np.testing.assert_allclose(*paths, rtol=1e-12)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("kind", ["rel", "abs"])
def test_a_plateau_lowers_the_rate_as_in_torch(mode, kind):
    metrics = [3.0, 2.0, 2.5, 2.4, 1.99995, 1.0, 1.5, 1.6, 1.7, 1.8]

    def make(s, opt):
        return s.ReduceLROnPlateau(opt, mode, factor=0.5, patience=1, threshold_mode=kind, cooldown=1, min_lr=0.02)

    np.testing.assert_allclose(*[trained(api, "Adam", make, metrics) for api in FACES], rtol=2e-6, atol=1e-7)


def test_a_schedule_and_its_optimiser_resume_from_a_file(tmp_path):
    api = fad.eager

    def made():
        x = api.tensor([1.0, -2.0], requires_grad=True)
        opt = api.optim.SGD([x], lr=0.1, momentum=0.9)
        return x, opt, api.optim.lr_scheduler.StepLR(opt, 2, 0.5)

    def steps(x, opt, scheduler, n):
        for _ in range(n):
            opt.zero_grad()
            (x * x).sum().backward()
            opt.step()
            scheduler.step()

    x, opt, scheduler = made()
    steps(x, opt, scheduler, 3)
    api.save({"x": x, "opt": opt.state_dict(), "schedule": scheduler.state_dict(), "epoch": 3}, tmp_path / "state")
    again, opt2, scheduler2 = made()
    state = api.load(tmp_path / "state")
    assert state["epoch"] == 3
    with api.no_grad():
        again.copy_(state["x"])
    opt2.load_state_dict(state["opt"])
    scheduler2.load_state_dict(state["schedule"])
    steps(x, opt, scheduler, 3)
    steps(again, opt2, scheduler2, 3)
    np.testing.assert_array_equal(x.detach().numpy(), again.detach().numpy())
    assert opt.param_groups[0]["lr"] == opt2.param_groups[0]["lr"] == 0.1 / 8


def test_a_whole_module_is_not_saved():
    with pytest.raises(TypeError, match="state_dict"):
        fad.eager.save(fad.eager.nn.Linear(1, 1), "nowhere")


@pytest.mark.parametrize("rule", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimisers_have_torchs_defaults(rule):
    mine, theirs = (getattr(f.optim, rule)([f.tensor([1.0], requires_grad=True)]).param_groups[0] for f in FACES)
    assert {k: v for k, v in mine.items() if k != "params"}.items() <= theirs.items()


def test_settings_of_a_group_may_be_changed_between_steps():
    ends = []
    for api in FACES:
        x = api.tensor([1.0, -2.0], requires_grad=True)
        opt = api.optim.AdamW([x], lr=0.1, weight_decay=0.0)
        for _ in range(4):
            opt.zero_grad()
            (x * x).sum().backward()
            opt.step()
            opt.param_groups[0]["betas"], opt.param_groups[0]["weight_decay"] = (0.5, 0.9), 0.3
        ends.append(x.detach().tolist())
    np.testing.assert_allclose(*ends, rtol=1e-6)


# --- distributions ----------------------------------------------------------------------------------------------------


def densities(api):
    d = api.distributions
    loc = api.tensor([0.3, -1.0], requires_grad=True)
    scale = api.tensor([0.5, 2.0], requires_grad=True)
    weights = api.tensor([[0.2, 1.0, 0.5], [3.0, 1.0, 1.0]], requires_grad=True)
    logits = api.tensor([[0.2, -1.0, 0.5], [3.0, 1.0, 1.0]], requires_grad=True)
    odds = api.tensor([0.1, 0.7], requires_grad=True)
    normal, by_weight, by_logits = d.Normal(loc, scale), d.Categorical(weights), d.Categorical(logits=logits)
    coin, other = d.Bernoulli(probs=odds), d.Bernoulli(logits=loc)
    values = api.tensor([0.1, 0.7])
    parts = [
        normal.log_prob(values), normal.entropy(), normal.mean, normal.variance,
        by_weight.log_prob(api.tensor([2, 0])), by_weight.entropy(), by_logits.log_prob(api.tensor([[1, 1], [0, 2]])),
        by_logits.entropy(), coin.log_prob(api.tensor([1.0, 0.0])), coin.entropy(),
        other.log_prob(api.tensor([[1.0, 0.0]])), d.kl_divergence(normal, d.Normal(0.0, 1.0)),
        d.kl_divergence(by_weight, by_logits),
    ]  # fmt: skip
    sum((p * p).sum() for p in parts).backward()
    return [p.detach().numpy() for p in parts] + [x.grad.numpy() for x in (loc, scale, weights, logits, odds)]


def further_densities(api):
    d = api.distributions
    a, b = api.tensor([0.7, 1.5], requires_grad=True), api.tensor([2.5, 0.5], requires_grad=True)
    root = api.tensor([[1.0, 0.0], [0.4, 0.8]], requires_grad=True)
    v = api.tensor([0.3, 0.6])
    whole = d.Independent(d.Laplace(a, b), 1)
    vectors = [d.MultivariateNormal(a, scale_tril=root), d.MultivariateNormal(a, root @ root.T)]
    parts = [
        d.Uniform(-a, b + 1.0).log_prob(v), d.Uniform(-a, b).entropy(), d.Uniform(-a, b).variance,
        d.Exponential(a).log_prob(v), d.Exponential(a).entropy(), d.Laplace(a, b).log_prob(v), whole.entropy(),
        whole.log_prob(v), d.Gamma(a, b).log_prob(v), d.Gamma(a, b).entropy(), d.Beta(a, b).log_prob(v),
        d.Poisson(a).log_prob(api.tensor([2.0, 0.0])), *(m.log_prob(v) for m in vectors),
        *(m.entropy() for m in vectors), vectors[0].covariance_matrix,
    ]  # fmt: skip
    sum((p * p).sum() for p in parts).backward()
    return [p.detach().numpy() for p in parts] + [x.grad.numpy() for x in (a, b, root)]


def test_further_densities_agree_with_torch():
    for mine, theirs in zip(further_densities(fad.eager), further_densities(torch), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=5e-5, atol=1e-5)


def test_draws_have_the_means_and_variances_that_they_should():
    d, n = fad.eager.distributions, 40_000
    fad.eager.manual_seed(0)
    mean = fad.eager.tensor([1.0, -2.0], requires_grad=True)
    for drawn, expected, var in (
        (d.Uniform(0.0, 2.0).rsample((n,)), 1.0, 1 / 3), (d.Exponential(2.0).rsample((n,)), 0.5, 0.25),
        (d.Laplace(1.0, 0.5).sample((n,)), 1.0, 0.5), (d.Gamma(3.0, 2.0).sample((n,)), 1.5, 0.75),
        (d.Beta(2.0, 2.0).sample((n,)), 0.5, 0.05), (d.Poisson(3.0).sample((n,)), 3.0, 3.0),
        (d.MultivariateNormal(mean, fad.eager.eye(2)).rsample((n,)), [1.0, -2.0], 1.0),
    ):  # fmt: skip
        np.testing.assert_allclose(drawn.mean(0).detach().numpy(), expected, atol=0.05)
        np.testing.assert_allclose(drawn.var(0).detach().numpy(), var, rtol=0.08)
    drawn.sum().backward()
    assert mean.grad.tolist() == [n, n]


def test_densities_entropies_and_divergences_agree_with_torch():
    for mine, theirs in zip(densities(fad.eager), densities(torch), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)


def test_draws_have_their_distribution_and_gradients_flow_through_those_that_keep_them():
    api = fad.eager
    api.manual_seed(0)
    p = api.tensor([0.1, 0.6, 0.3])
    counts = np.bincount(api.distributions.Categorical(p).sample((20000,)).numpy(), minlength=3) / 20000
    np.testing.assert_allclose(counts, p.numpy(), atol=0.012)
    assert sorted(api.multinomial(p, 3).tolist()) == [0, 1, 2]
    assert api.distributions.Categorical(p.expand(4, 3)).sample((2, 5)).shape == (2, 5, 4)
    assert api.distributions.Bernoulli(p).sample((9000,)).mean(0).numpy() == pytest.approx(p.numpy(), abs=0.02)
    loc = api.tensor([1.0, 2.0], requires_grad=True)
    drawn = api.distributions.Normal(loc, 0.5)
    assert not drawn.sample().requires_grad
    drawn.rsample((3,)).sum().backward()
    assert loc.grad.tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="cannot be drawn"):
        api.multinomial(api.tensor([1.0, 0.0]), 2)


# --- data -------------------------------------------------------------------------------------------------------------


def test_loaders_give_batches_in_order_or_shuffled_by_the_seed():
    data = fad.eager.utils.data
    x, y = fad.eager.arange(10).float(), fad.eager.arange(10)
    loader = data.DataLoader(data.TensorDataset(x, y), batch_size=4)
    assert [b[1].tolist() for b in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(data.DataLoader(loader.dataset, batch_size=4, drop_last=True)) == 2
    orders = []
    for _ in range(2):
        fad.eager.manual_seed(3)
        shuffled = data.DataLoader(loader.dataset, batch_size=4, shuffle=True)
        orders.append([v for _, labels in shuffled for v in labels.tolist()])
    assert orders[0] == orders[1] != sorted(orders[0])
    parts = data.random_split(loader.dataset, [0.75, 0.25])
    assert [len(p) for p in parts] == [8, 2]
    assert sorted(int(p[i][1]) for p in parts for i in range(len(p))) == list(range(10))


def test_examples_of_any_form_are_collated_as_in_torch():
    examples = [{"x": np.ones(2) * i, "label": i, "pair": (float(i), np.float32(i))} for i in range(3)]
    mine, theirs = (next(iter(f.utils.data.DataLoader(examples, batch_size=3))) for f in FACES)
    np.testing.assert_array_equal(mine["x"].numpy(), theirs["x"].numpy())
    assert mine["label"].tolist() == theirs["label"].tolist()
    for a, b in zip(mine["pair"], theirs["pair"], strict=True):
        assert a.tolist() == b.tolist()


# --- functions --------------------------------------------------------------------------------------------------------

A, B = rng.normal(size=(3, 3)).astype("float32"), rng.normal(size=(3, 3)).astype("float32")
CALLS = {
    "div, floor": lambda t, a, b: t.div(a, b, rounding_mode="floor"),
    "div, trunc": lambda t, a, b: a.div(b, rounding_mode="trunc"),
    "div of integers": lambda t, a, b: t.div(t.tensor([-7, 7]), 2, rounding_mode="trunc"),
    "div": lambda t, a, b: a.div(b),
    "addmm": lambda t, a, b: t.addmm(a, a, b, beta=0.5, alpha=2.0),
    "triu": lambda t, a, b: t.triu(a, diagonal=1) + a.tril(-1) + t.diag(t.diag(b, diagonal=0)),
    "flip": lambda t, a, b: t.flip(a, dims=(0,)) + b.flip(0, 1) + t.flip(b, [1]),
    "arange": lambda t, a, b: t.arange(start=1, end=7, step=2) + t.arange(3),
    "sums in double": lambda t, a, b: a.cumsum(0, dtype=t.float64) + a.mean(dtype=t.float64) + a.prod(0),
    "softmax in double": lambda t, a, b: t.nn.functional.softmax(a, dim=1, dtype=t.float64),
    "new ones": lambda t, a, b: a.new_ones(2, 3) + a.new_zeros((2, 3)) + a.new_full((2, 3), 4.0),
    "new tensor": lambda t, a, b: a.new_tensor([1.0, 2, 3]),
    "topk": lambda t, a, b: t.topk(a, 2, dim=1, sorted=True)[0],
    "hyperbolic": lambda t, a, b: t.asinh(a) + t.acosh(1.5 + a * a) + t.atanh(0.1 * a),
    "logit": lambda t, a, b: t.logit(t.sigmoid(a)) + t.xlogy(b * b, a * a + 0.1) + t.erfinv(0.1 * a),
    "one-sided": lambda t, a, b: a.clamp_min(0.1) + t.clamp_max(a, 0.2),
    "tensordot": lambda t, a, b: t.tensordot(a, b, dims=1) + t.dist(a, b),
    "nansum": lambda t, a, b: t.nansum(a, dim=0) + t.nanmean(a),
    "take along": lambda t, a, b: t.take_along_dim(a, t.tensor([[0], [2], [1]]), dim=1),
    "std and mean": lambda t, a, b: t.std_mean(a, dim=1)[0] + t.var_mean(a)[1] + t.floor_divide(t.tensor(7), 2),
    "median": lambda t, a, b: t.median(a) + t.median(a, dim=1)[0] + a.median(0, keepdim=True).values,
    "median, of four": lambda t, a, b: t.median(a[0, 0] * t.tensor([3.0, 1.0, 2.0, 4.0])),
    "index add": lambda t, a, b: b.index_add(0, t.tensor([0, 0]), a[:2]),
    "index add, along": lambda t, a, b: b.index_add(1, t.tensor([2, 0]), a[:, 1:], alpha=2.0),
    "unflatten": lambda t, a, b: t.stack([a, b]).reshape(2, 9).unflatten(1, (3, -1)).sum(0),
    "diagonals": lambda t, a, b: t.diag_embed(a).sum(0) + t.atleast_2d(a[0]),
    "where": lambda t, a, b: t.argwhere(b > 0),
    "corners": lambda t, a, b: t.tril_indices(3, 4, -1).sum() + t.triu_indices(3, 3, offset=1).sum(),
    "vector": lambda t, a, b: t.nn.utils.parameters_to_vector([a, b]),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls_as_scripts_write_them_agree_with_torch(name):
    found = []
    for api in FACES:
        a, b = api.tensor(A, requires_grad=True), api.tensor(B)
        y = CALLS[name](api, a, b)
        if y.requires_grad and name != "div, floor":
            (y * y).sum().backward()
        found.append((y.detach().numpy(), None if a.grad is None else a.grad.numpy()))
    (y, g), (ty, tg) = found
    assert y.dtype == ty.dtype
    np.testing.assert_allclose(y, ty, rtol=1e-5, atol=1e-6)
    if tg is not None and g is not None:
        np.testing.assert_allclose(g, tg, rtol=1e-4, atol=1e-5)


def test_hooks_before_forward_and_buffers_that_are_not_saved():
    nn = fad.eager.nn
    layer = nn.Linear(2, 1)
    layer.register_buffer("scale", fad.eager.tensor(2.0), persistent=False)
    assert "scale" not in layer.state_dict()
    assert "scale" in dict(layer.named_buffers())
    handle = layer.register_forward_pre_hook(lambda module, args: args[0] * 0.0)
    assert fad.eager.equal(layer(fad.eager.ones(3, 2)), layer.bias.expand(3, 1))
    handle.remove()
    assert not fad.eager.equal(layer(fad.eager.ones(3, 2)), layer.bias.expand(3, 1))
    parameters = list(nn.Sequential(layer).parameters(recurse=False))
    assert parameters == []
    vector = nn.utils.parameters_to_vector(layer.parameters())
    nn.utils.vector_to_parameters(vector * 0.0, layer.parameters())
    assert not layer.weight.detach().numpy().any()
