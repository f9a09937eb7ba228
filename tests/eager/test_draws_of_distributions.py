"""What distributions of the eager API draw has their moments, and gradients; what they cannot take is said in words."""

import math

import numpy as np
import pytest
from each import each

import fad
import fad.eager as torch

D = torch.distributions
N = 4000
SHARES = torch.tensor([0.2, 0.35, 0.45])

CONTINUOUS = {
    "Normal": lambda: D.Normal(1.0, 2.0), "Laplace": lambda: D.Laplace(1.0, 0.5), "Gumbel": lambda: D.Gumbel(1.0, 2.0),
    "HalfNormal": lambda: D.HalfNormal(2.0), "Uniform": lambda: D.Uniform(-1.0, 2.0),
    "LogNormal": lambda: D.LogNormal(0.2, 0.3), "Weibull": lambda: D.Weibull(2.0, 1.5),
    "Pareto": lambda: D.Pareto(1.0, 9.0), "Exponential": lambda: D.Exponential(2.0), "Gamma": lambda: D.Gamma(0.7, 2.0),
    "Chi2": lambda: D.Chi2(3.0), "InverseGamma": lambda: D.InverseGamma(9.0, 2.0), "Beta": lambda: D.Beta(0.6, 2.0),
    "Kumaraswamy": lambda: D.Kumaraswamy(2.0, 3.0), "StudentT": lambda: D.StudentT(9.0, 1.0, 2.0),
    "FisherSnedecor": lambda: D.FisherSnedecor(3.0, 19.0),
    "Dirichlet": lambda: D.Dirichlet(torch.tensor([0.5, 1.0, 3.0])),
    "MultivariateNormal": lambda: D.MultivariateNormal(SHARES[:2], torch.tensor([[2.0, 0.5], [0.5, 1.0]])),
}  # fmt: skip
DISCRETE = {
    "Bernoulli": lambda: D.Bernoulli(0.3), "Geometric": lambda: D.Geometric(0.3),
    "Binomial": lambda: D.Binomial(5, 0.3),
    "NegativeBinomial": lambda: D.NegativeBinomial(2.5, 0.3), "Poisson": lambda: D.Poisson(3.0),
    "OneHotCategorical": lambda: D.OneHotCategorical(SHARES),
    "Straight": lambda: D.OneHotCategoricalStraightThrough(SHARES),
    "Multinomial": lambda: D.Multinomial(5, SHARES),
    "Mixture": lambda: D.MixtureSameFamily(D.Categorical(SHARES), D.Normal(SHARES * 9.0, 0.5)),
}  # fmt: skip


@each("name", [*CONTINUOUS, *DISCRETE])
def test_draws_have_the_mean_and_variance_of_their_distribution(name):
    torch.manual_seed(1)
    d = {**CONTINUOUS, **DISCRETE}[name]()
    x = d.sample((N,)).numpy().astype(float)
    errors = x.std(0) / math.sqrt(N)
    assert np.all(np.abs(x.mean(0) - d.mean.numpy()) < 4.0 * errors)
    squares = (x - d.mean.numpy()) ** 2
    assert np.all(np.abs(squares.mean(0) - d.variance.numpy()) < 4.0 * squares.std(0) / math.sqrt(N))


@each("name", ["Cauchy", "HalfCauchy"])
def test_draws_without_a_mean_have_the_median_of_their_distribution(name):
    torch.manual_seed(1)
    d = {"Cauchy": D.Cauchy(1.0, 2.0), "HalfCauchy": D.HalfCauchy(2.0)}[name]
    below = d.cdf(torch.tensor(np.median(d.sample((N,)).numpy())))
    assert abs(float(below) - 0.5) < 4.0 * 0.5 / math.sqrt(N)


def test_angles_turn_about_their_place():
    torch.manual_seed(1)
    d = D.VonMises(2.0, 1.5)
    x = d.sample((N,)).numpy() - 2.0
    assert abs(np.sin(x).mean()) < 4.0 * np.sin(x).std() / math.sqrt(N)
    assert abs(np.cos(x).mean() - (1.0 - float(d.variance))) < 4.0 * np.cos(x).std() / math.sqrt(N)


# class: parameters; the mean of draws moves with each as the formula of the mean does
WITH_GRADIENTS = {
    "Gamma": [0.7, 2.0], "Beta": [0.6, 2.0], "Chi2": [3.0], "StudentT": [9.0, 1.0, 2.0], "InverseGamma": [9.0, 2.0],
    "FisherSnedecor": [3.0, 19.0],
    "Dirichlet": [[0.5, 1.0, 3.0]], "Weibull": [2.0, 1.5], "Kumaraswamy": [2.0, 3.0], "Gumbel": [1.0, 2.0],
    "Pareto": [1.0, 9.0], "HalfNormal": [2.0], "LogNormal": [0.2, 0.3],
}  # fmt: skip


@each("name", WITH_GRADIENTS)
def test_gradients_through_draws_are_those_of_the_mean_and_the_variance(name):
    torch.manual_seed(2)
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in WITH_GRADIENTS[name]]
    d = getattr(D, name)(*leaves)
    mean, second = d.mean, d.variance + d.mean**2
    of_formula = torch.autograd.grad(
        mean[..., 0] + second[..., 0] if mean.ndim else mean + second, leaves, retain_graph=True
    )
    wide = [x.detach().expand(N, *x.shape).clone().requires_grad_() for x in leaves]
    drawn = getattr(D, name)(*wide).rsample()
    drawn = drawn[..., 0] if mean.ndim else drawn
    (drawn + drawn**2).sum().backward()  # each draw has parameters of its own, so their gradients can be counted
    for x, expected in zip(wide, of_formula, strict=True):
        g = x.grad.numpy()
        assert np.all(np.abs(g.mean(0) - expected.numpy()) < 4.0 * g.std(0) / math.sqrt(N) + 1e-12)


def test_draws_of_small_concentrations_are_positive_and_have_finite_gradients():
    torch.manual_seed(0)
    a = torch.full((200,), 0.001).requires_grad_()
    x, y = D.Gamma(a, 1.0).rsample(), D.Beta(a, a).rsample()
    assert bool((x > 0).all())
    assert bool(((y > 0) & (y < 1)).all())
    (x + y).sum().backward()
    assert bool(a.grad.isfinite().all())
    D.Beta(a, a).log_prob(y)


def test_relaxed_draws_lie_between_and_carry_gradients():
    torch.manual_seed(0)
    logits = torch.tensor([0.5, -1.0, 2.0]).requires_grad_()
    hard = D.OneHotCategoricalStraightThrough(logits=logits).rsample((5,))
    coins = D.RelaxedBernoulli(0.5, logits=logits).rsample((N,))
    classes = D.RelaxedOneHotCategorical(torch.tensor(0.5), logits=logits).rsample((N,))
    np.testing.assert_allclose(classes.sum(-1).detach().numpy(), 1.0, rtol=1e-5)
    chosen = torch.nn.functional.one_hot(classes.argmax(-1), 3).float().mean(0)  # the largest is the class drawn
    np.testing.assert_allclose(chosen.numpy(), torch.softmax(logits, -1).detach().numpy(), atol=0.03)
    np.testing.assert_allclose((coins > 0.5).float().mean(0).numpy(), logits.sigmoid().detach().numpy(), atol=0.03)
    assert set(hard.detach().numpy().round(6).ravel()) == {0.0, 1.0}
    (hard * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    p = torch.softmax(logits.detach(), -1).numpy()
    np.testing.assert_allclose(logits.grad.numpy(), 5 * p * ([1, 2, 3] - p @ [1, 2, 3]), rtol=1e-5)


REFUSED = {
    "a scale below zero": (lambda: D.Normal(0.0, -1.0), "Normal needs positive numbers as scale"),
    "ends the wrong way": (lambda: D.Uniform(1.0, 0.0), "low that is below high"),
    "a probability above one": (lambda: D.Bernoulli(1.5), "numbers between 0 and 1 as probs"),
    "weights below zero": (lambda: D.Categorical(torch.tensor([-1.0, 2.0])), "add up to 1"),
    "weights of no sum": (lambda: D.Categorical(torch.tensor([-0.5, 0.5])), "sums are positive"),
    "too many counts": (lambda: D.Multinomial(3, SHARES).log_prob(torch.tensor([2.0, 1.0, 1.0])), "up to 3 at most"),
    "nan": (lambda: D.Categorical(logits=torch.tensor([math.nan, 2.0])), "real numbers as logits"),
    "both": (lambda: D.Geometric(0.5, 0.5), "either probs or logits"),
    "no tensor of counts": (lambda: D.Multinomial(2.5, torch.ones(2)), "one whole number"),
    "a value outside": (lambda: D.Exponential(1.0).log_prob(-1.0), "of Exponential needs numbers that are not"),
    "half a count": (lambda: D.Poisson(1.0).log_prob(0.5), "whole numbers"),
    "a class that is not there": (
        lambda: D.Categorical(torch.ones(2)).log_prob(torch.tensor(2)), "whole numbers from 0 to 1"
    ),
    "a matrix that is not symmetric": (
        lambda: D.MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 0.5], [0.0, 1.0]])), "symmetric"
    ),
    "no transform": (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [abs]), "list of them"),
    "too few axes": (lambda: D.Independent(D.Normal(0.0, 1.0), 1), "1 axes or more"),
    "other numbers of components": (
        lambda: D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.zeros(3), 1.0)), "as many components"
    ),
}  # fmt: skip


@each("case", REFUSED)
def test_what_a_distribution_cannot_take_is_said(case):
    make, words = REFUSED[case]
    with pytest.raises((ValueError, NotImplementedError), match=words):
        make()


def test_without_validation_nothing_is_checked():
    assert D.Exponential(1.0, validate_args=False).log_prob(-1.0) == 1.0
    assert D.Uniform(0.0, 1.0, validate_args=False).log_prob(2.0) == -math.inf
    assert D.HalfNormal(1.0, validate_args=False).log_prob(-1.0) == -math.inf
    soft = D.OneHotCategorical(SHARES, validate_args=False).log_prob(torch.tensor([0.1, 0.2, 0.7]))
    assert float(soft) == pytest.approx(math.log(0.45))  # as PyTorch: of the largest


def test_what_a_distribution_does_not_have_says_so():
    for call in (D.Gumbel(0.0, 1.0).enumerate_support, lambda: D.Poisson(1.0).entropy(), D.Poisson(1.0).rsample):
        with pytest.raises(NotImplementedError, match="here"):
            call()
    with pytest.raises(NotImplementedError, match="no divergence of Laplace and Poisson"):
        D.kl_divergence(D.Laplace(0.0, 1.0), D.Poisson(1.0))


def test_a_registered_divergence_is_found_for_classes_that_derive_from_its_own():
    class Mine(D.Normal):
        """Somebody's own."""

    class Other(D.Distribution):
        """Somebody's own, too."""

    @D.register_kl(Mine, Other)
    def compute(p, q):
        return p.loc * 2.0

    assert D.kl_divergence(Mine(3.0, 1.0), Other()) == 6.0
    assert D.kl_divergence(Mine(1.0, 1.0), D.Normal(0.0, 1.0)) == 0.5
    with pytest.raises(TypeError, match="classes of distributions"):
        D.register_kl(Mine, int)


def test_all_values_are_listed():
    assert D.Bernoulli(torch.tensor([0.1, 0.2])).enumerate_support().tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert D.Categorical(torch.ones(2, 3)).enumerate_support(expand=False).tolist() == [[0], [1], [2]]
    assert D.OneHotCategorical(torch.ones(2)).enumerate_support().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert D.Binomial(2, 0.5).enumerate_support().tolist() == [0.0, 1.0, 2.0]


def test_numbers_are_taken_in_the_precision_of_the_parameters():
    zero = torch.zeros(1, dtype=torch.float64)
    for d in (D.Normal(zero, 1.0), D.Independent(D.Normal(zero, 1.0), 1), D.LogNormal(zero - 1.0, 1.0)):
        exact = d.log_prob(torch.tensor([0.3], dtype=torch.float64))
        assert d.log_prob(0.3).tolist() == exact.tolist()
    assert D.Normal(zero, 1.0).cdf(0.3).tolist() == D.Normal(zero, 1.0).cdf(zero + 0.3).tolist()


def test_somebodys_own_transform_and_distribution_work():
    class Cube(D.Transform):
        domain = codomain = D.constraints.real
        bijective = True

        def _call(self, x):
            return x**3

        def _inverse(self, y):
            return y.sign() * y.abs() ** (1.0 / 3.0)

        def log_abs_det_jacobian(self, x, y):
            return (3.0 * x * x).log()

    d = D.TransformedDistribution(D.Normal(0.0, 1.0), [Cube()])
    assert float(d.log_prob(8.0)) == pytest.approx(-2.0 - 0.5 * math.log(2 * math.pi) - math.log(12.0))
    assert float(d.cdf(8.0)) == pytest.approx(0.97725, rel=1e-4)


def test_masked_classes_have_a_finite_entropy_and_are_never_drawn():
    logits = torch.tensor([0.0, 0.0, -math.inf]).requires_grad_()
    d = D.Categorical(logits=logits)
    assert float(d.entropy()) == pytest.approx(math.log(2.0))
    assert 2 not in d.sample((100,)).tolist()
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"


TRANSFORMED = {
    "Uniform": lambda x: D.Uniform(x - 2.0, 1.0).log_prob(0.3), "Gamma": lambda x: D.Gamma(x, 1.0).log_prob(1.2),
    "Categorical": lambda x: D.Categorical(torch.stack([x, 1.0 - x])).log_prob(torch.tensor(1)),
    "Dirichlet": lambda x: D.Dirichlet(torch.stack([x, x + 1.0])).log_prob(torch.tensor([0.25, 0.75])),
    "Geometric": lambda x: D.Geometric(x).log_prob(2.0), "LogNormal": lambda x: D.LogNormal(x, 1.0).cdf(2.0),
    "MultivariateNormal": lambda x: D.MultivariateNormal(torch.stack([x, x]), torch.eye(2).double()).log_prob(-1.5),
}  # fmt: skip


@each("name", TRANSFORMED)
def test_transforms_of_functions_that_use_distributions_give_what_plain_calls_do(name):
    f = lambda x: TRANSFORMED[name](torch.as_tensor(x))
    plain, step = float(f(np.float64(0.7))), 1e-6
    slope = (float(f(np.float64(0.7 + step))) - float(f(np.float64(0.7 - step)))) / (2.0 * step)
    assert float(fad.jit(f)(0.7)) == pytest.approx(plain)
    np.testing.assert_allclose(np.asarray(fad.vmap(f)(np.full(3, 0.7))), plain, rtol=1e-6)
    assert float(fad.grad(f)(0.7)) == pytest.approx(slope, rel=1e-5)
    assert float(fad.jit(fad.grad(f))(0.7)) == pytest.approx(slope, rel=1e-5)
