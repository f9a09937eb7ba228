"""torch.func and torch.utils.checkpoint of the eager API: the numbers of PyTorch, from the same programs."""

import numpy as np
import pytest

import fad.eager as eager
from fad.errors import ImpureFunctionError

theirs = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is not installed")

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),  # PyTorch's own linearize
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node"),
]
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
W = {"0.weight": (5, 3), "0.bias": (5,), "2.weight": (2, 5), "2.bias": (2,)}
W = {name: RNG.normal(size=shape) for name, shape in W.items()}
LABELS = RNG.normal(size=(4, 2))


def tensors(torch, *xs):
    return tuple(torch.tensor(x) for x in xs)


def model(torch):
    m = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).double()
    m.load_state_dict({name: torch.tensor(w) for name, w in W.items()})
    return m


def scalar(x):
    return (x.sin() * x).sum()


def both(x, y):
    return (x * y.exp()).sum()


def gradients(torch):
    x, y = tensors(torch, X, Y)
    f = torch.func
    yield f.grad(scalar)(x)
    yield f.grad(both, argnums=(0, 1))(x, y)
    yield f.grad(lambda x: (scalar(x), x * 2), has_aux=True)(x)
    yield f.grad_and_value(scalar)(x)
    yield f.grad_and_value(lambda x: (scalar(x), {"twice": x * 2}), has_aux=True)(x)
    yield f.vmap(f.grad(scalar))(x)


def products(torch):
    x, y = tensors(torch, X, Y)
    f = torch.func
    out, pull = f.vjp(lambda x: x.sin(), x)
    yield out, pull(y)
    out, pull = f.vjp(lambda x, y: x * y.cos(), x, y)
    yield out, pull(y)
    out, pull = f.vjp(lambda x: (x.sin(), x.sum()), x)
    yield out, pull((y, y.sum()))
    out, pull, aux = f.vjp(lambda x: (x.sin(), x * 3), x, has_aux=True)
    yield out, pull(y), aux
    yield f.jvp(lambda x, y: x * y, (x, y), (y, x))
    yield f.jvp(lambda x: (x.exp(), x + 1), (x,), (y,), has_aux=True)
    out, push = f.linearize(lambda x: x.sin(), x)
    yield out, push(y)


def matrices(torch):
    x, y = tensors(torch, X[0], Y[0])
    f = torch.func
    for jacobian in (f.jacrev, f.jacfwd):
        yield jacobian(lambda x: x**2)(x)
        yield jacobian(lambda x, y: x * y, argnums=(0, 1))(x, y)
        yield jacobian(lambda x: (x**2, x.sum()), has_aux=True)(x)
    yield f.jacrev(lambda x: x**3, chunk_size=2)(x)
    yield f.hessian(scalar)(x)
    yield f.hessian(both, argnums=1)(x, y)
    yield f.jacfwd(f.jacrev(scalar))(x)


def batches(torch):
    x, y = tensors(torch, X, Y)
    yield torch.vmap(lambda x, y: x.dot(y))(x, y)
    yield torch.vmap(lambda x, y: x * y, in_dims=(0, None), out_dims=1)(x, y[0])
    yield torch.vmap(lambda d: d["x"] + d["y"], in_dims=({"x": 0, "y": None},))({"x": x, "y": y[0]})
    yield torch.vmap(lambda x: x.sum(), in_dims=1, chunk_size=2)(x)
    yield torch.vmap(torch.vmap(lambda x: x.exp()))(x)


def per_example(torch):
    """The gradient of each example's loss, as in PyTorch's introduction to function transforms."""
    m, (x, labels) = model(torch), tensors(torch, X, LABELS)
    parameters = {k: v.detach() for k, v in m.named_parameters()}

    def loss(parameters, x, label):
        y = torch.func.functional_call(m, (parameters, {}), (x[None],))
        return torch.nn.functional.mse_loss(y, label[None])

    yield torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, labels)
    yield torch.func.functional_call(m, {"2.bias": torch.zeros(2, dtype=torch.float64)}, x)
    yield m(x)


def ensemble(torch):
    models = [model(torch), model(torch)]
    with torch.no_grad():
        models[1][0].weight.mul_(0.5)
    (x,) = tensors(torch, X)
    parameters, buffers = torch.func.stack_module_state(models)

    def run(parameters, buffers, x):
        return torch.func.functional_call(models[0], (parameters, buffers), (x,))

    yield torch.vmap(run, in_dims=(0, 0, None))(parameters, buffers, x)


def checkpoints(torch):
    from_utils = eager.utils.checkpoint if torch is eager else theirs.utils.checkpoint
    m, (x,) = model(torch), tensors(torch, X)
    x.requires_grad_()
    y = from_utils.checkpoint(m, x, use_reentrant=False)
    y.pow(2).sum().backward()
    yield y, x.grad, [p.grad for p in m.parameters()]
    m.zero_grad()
    y = from_utils.checkpoint_sequential(m, 2, x, use_reentrant=False)
    y.sin().sum().backward()
    yield y, x.grad, [p.grad for p in m.parameters()]


def flat(x):
    if isinstance(x, dict):
        return [z for k in sorted(x) for z in flat(x[k])]
    return [z for y in x for z in flat(y)] if isinstance(x, (tuple, list)) else [x]


PROGRAMS = [gradients, products, matrices, batches, per_example, ensemble, checkpoints]


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.__name__ for p in PROGRAMS])
def test_a_program_of_torch_func_gives_the_numbers_and_the_structure_of_pytorch(program):
    for mine, oracle in zip(program(eager), program(theirs), strict=True):
        assert type(mine).__name__ == type(oracle).__name__
        for a, b in zip(flat(mine), flat(oracle), strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_vmap_refuses_random_numbers_unless_they_may_be_the_same():
    x = eager.zeros(3, 2)
    noisy = lambda x: x + eager.randn(2)
    with pytest.raises(ImpureFunctionError, match="randomness='same'"):
        eager.vmap(noisy)(x)
    y = eager.vmap(noisy, randomness="same")(x)
    assert bool((y == y[0]).all())
    with pytest.raises(ValueError, match="draw them outside"):
        eager.vmap(noisy, randomness="different")
    eager.randn(2)


def test_functional_call_names_what_a_module_lacks_and_leaves_the_module_as_it_was():
    m = model(eager)
    before = m[0].weight
    with pytest.raises(KeyError, match=r"no parameter or buffer '0\.width'"):
        eager.func.functional_call(m, {"0.weight": eager.zeros(5, 3), "0.width": eager.ones(1)}, eager.ones(3))
    assert m[0].weight is before


def test_functional_call_replaces_running_statistics_for_the_call():
    norm = eager.nn.BatchNorm1d(2).eval()
    x, ones = eager.ones(3, 2), eager.ones(2)
    y = eager.func.functional_call(norm, {"running_mean": ones}, x)
    np.testing.assert_allclose(y.detach().numpy(), 0.0, atol=1e-6)
    assert float(norm.running_mean.sum()) == 0.0


def test_checkpoint_refuses_to_draw_other_numbers_the_second_time():
    with pytest.raises(ValueError, match="preserve_rng_state"):
        eager.utils.checkpoint.checkpoint(lambda x: x, eager.ones(1), preserve_rng_state=False)
