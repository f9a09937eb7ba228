"""Transforms, and distributions that are transformed, mixed or of vectors, of the eager API beside PyTorch's."""

import numpy as np
import pytest
from each import each

import fad.eager

torch = pytest.importorskip("torch")
APIS = (fad.eager, torch)


def assert_same(compute, *args, rtol=2e-6):
    """Compare what a function of the API computes, a list of tensors, and its gradients."""
    found = []
    for api in APIS:
        leaves, parts = compute(api, *args)
        sum((p * p).sum() for p in parts if p.requires_grad).backward()
        found.append([p.detach().numpy() for p in (*parts, *(x.grad for x in leaves))])
    for mine, theirs in zip(*found, strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-9)


def leaf(api, x):
    return api.tensor(x, dtype=api.float64, requires_grad=True)


TRANSFORMS = {
    "exp": lambda d, s: d.ExpTransform(),
    "affine": lambda d, s: d.AffineTransform(0.5, s),
    "affine down": lambda d, s: d.AffineTransform(0.5, -2.0),
    "affine of vectors": lambda d, s: d.AffineTransform(0.5, s, event_dim=1),
    "sigmoid": lambda d, s: d.SigmoidTransform(),
    "tanh": lambda d, s: d.TanhTransform(),
    "tanh of vectors": lambda d, s: d.IndependentTransform(d.TanhTransform(), 1),
    "vectors to shares": lambda d, s: d.StickBreakingTransform(),
    "softplus": lambda d, s: d.SoftplusTransform(),
    "exp and power": lambda d, s: d.ComposeTransform([d.ExpTransform(), d.PowerTransform(s)]),
    "exp there and back": lambda d, s: d.ComposeTransform([d.ExpTransform(), d.ExpTransform().inv]),
    "vectors and single numbers": lambda d, s: d.ComposeTransform(
        [d.AffineTransform(0.5, s, event_dim=1), d.TanhTransform()]
    ),
}


def transform(api, name):
    d = api.distributions
    x, s = leaf(api, [[0.3, -0.7], [1.1, 0.4]]), leaf(api, [0.5, 1.5])
    t = TRANSFORMS[name](d, s)
    y = t(x) + 0.0 * s.sum()
    return [x, s], [y, t.inv(y), t.log_abs_det_jacobian(x, y), -t.inv.log_abs_det_jacobian(y, x)]


@each("name", TRANSFORMS)
def test_transforms_their_inverses_and_determinants_are_torchs(name):
    assert_same(transform, name)


def transformed(api, name):
    d = api.distributions
    loc, s = leaf(api, [0.1, -0.4]), leaf(api, [0.5, 1.5])
    t = TRANSFORMS[name](d, s)
    value = t(api.tensor([[0.3, -0.7], [1.1, 0.4]], dtype=api.float64)).detach()
    dist = d.TransformedDistribution(d.Normal(loc, s), [t])
    wide = dist.expand((3, *dist.batch_shape))
    parts = [dist.log_prob(value), wide.log_prob(value[0])]
    if "vectors" not in name:
        parts += [dist.cdf(value), dist.icdf(api.tensor([0.2, 0.7], dtype=api.float64))]
    shapes = [*dist.batch_shape, -1, *dist.event_shape, -1, *wide.batch_shape, -1, *wide.event_shape]
    return [loc, s], [*parts, api.tensor([float(n) for n in shapes])]


@each("name", TRANSFORMS)
def test_densities_of_transformed_numbers_are_torchs(name):
    assert_same(transformed, name)


def mixtures(api):
    d = api.distributions
    weights, loc, scale = leaf(api, [0.2, 0.5, 0.3]), leaf(api, [[0.1, -0.4, 2.0]]), leaf(api, [0.5, 1.5, 0.3])
    mixed = d.MixtureSameFamily(d.Categorical(weights), d.Normal(loc, scale))
    rows = d.Independent(d.Normal(leaf(api, [[0.1, 0.2], [0.3, 0.4], [1.0, 2.0]]), scale.unsqueeze(-1)), 1)
    vectors = d.MixtureSameFamily(d.Categorical(logits=weights), rows)
    v = api.tensor([[0.3], [0.7]], dtype=api.float64)
    return [weights, loc, scale], [
        mixed.log_prob(v), mixed.cdf(v), mixed.mean, mixed.variance, vectors.mean, vectors.variance,
        vectors.log_prob(api.tensor([[0.3, 0.1], [0.7, -1.0]], dtype=api.float64)),
        vectors.expand((4,)).log_prob(api.tensor([0.3, 0.1], dtype=api.float64)),
    ]  # fmt: skip


def test_mixtures_are_torchs():
    assert_same(mixtures)


def vectors(api):
    d = api.distributions
    loc, root = leaf(api, [[0.1, 0.4], [-1.0, 0.3]]), leaf(api, [[1.0, 0.0], [0.4, 0.8]])
    by_root, precise = (
        d.MultivariateNormal(loc, scale_tril=root),
        d.MultivariateNormal(loc, precision_matrix=root @ root.mT),
    )
    other = d.MultivariateNormal(loc[0] * 2.0, root @ root.mT + api.eye(2, dtype=api.float64))
    whole, some = (d.Independent(d.Normal(m, root.abs().sum(-1)), 1) for m in (loc, loc * 0.5))
    v = api.tensor([0.3, 0.6], dtype=api.float64)
    return [loc, root], [
        by_root.log_prob(v), precise.log_prob(v), by_root.variance, by_root.mode, precise.covariance_matrix,
        by_root.precision_matrix, precise.entropy(), d.kl_divergence(by_root, other), d.kl_divergence(other, precise),
        d.kl_divergence(whole, some), whole.stddev, whole.expand((3, 2)).entropy(),
    ]  # fmt: skip


def test_normal_vectors_and_independent_axes_are_torchs():
    assert_same(vectors)


def test_a_policy_that_is_squashed_by_tanh_has_torchs_gradients_through_its_draws():
    found = []
    for api in APIS:
        d = api.distributions
        loc, scale = leaf(api, [0.5, 12.0]), leaf(api, [0.5, 1.0])
        policy = d.TransformedDistribution(
            d.Normal(loc, scale), [d.TanhTransform().with_cache(), d.AffineTransform(1.0, 2.0, cache_size=1)]
        )
        policy.base_dist.rsample = lambda shape, loc=loc, scale=scale: loc + scale * 0.7  # the same noise in both
        action = policy.rsample()
        (policy.log_prob(action).sum() + action.sum()).backward()  # at 12.7 tanh is 1 to all digits but one
        found.append([*action.tolist(), *loc.grad.tolist(), *scale.grad.tolist()])
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_a_draw_of_gamma_has_torchs_derivative_at_its_place():
    api = fad.eager
    api.manual_seed(0)
    for dtype, rtol in ((api.float64, 1e-3), (api.float32, 3e-3)):
        a = api.tensor([0.05, 0.6, 1.0, 3.0, 20.0], dtype=dtype, requires_grad=True)
        drawn = api.distributions.Gamma(a, 1.0).rsample()
        drawn.sum().backward()
        at = [torch.tensor(x.detach().numpy()) for x in (a, drawn)]
        np.testing.assert_allclose(a.grad.numpy(), torch._standard_gamma_grad(*at).numpy(), rtol=rtol)
