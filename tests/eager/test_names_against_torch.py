"""Functions and methods under PyTorch's names: the same calls give the same values and gradients."""

import numpy as np
import pytest

import fad.eager

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is not installed")
pytestmark = pytest.mark.oracle
rng = np.random.default_rng(0)
A, B = rng.normal(size=(3, 4)), rng.uniform(0.2, 2.0, (3, 4))
S = np.eye(3) * 3 + 0.3 * rng.normal(size=(3, 3))
I, J = np.array([[0, 2, 1, 0], [2, 2, 0, 1]]), np.array([2, 0])

A3 = lambda t: t.tensor(A[0, :3])

# Each takes the module, then A, B and S as tensors of double precision that require grad.
CALLS = {
    "kthvalue": lambda t, a, b, s: t.kthvalue(a, 2, dim=1).values + a.kthvalue(3, 1)[0],
    "kthvalue kept": lambda t, a, b, s: a.kthvalue(1, dim=0, keepdim=True)[1] * a,
    "mode": lambda t, a, b, s: t.mode(t.tensor([[1, 2, 2, 1], [3, 0, 3, 1]]), 1)[0] * a[0, 0],
    "msort": lambda t, a, b, s: t.msort(a) * b,
    "running extremes": lambda t, a, b, s: t.cummax(a, 1)[0] * b + a.cummin(0).values,
    "places of running extremes": lambda t, a, b, s: a * t.cummax(a, 1)[1] + b * a.cummin(0)[1],
    "logcumsumexp": lambda t, a, b, s: t.logcumsumexp(a, dim=1),
    "aminmax": lambda t, a, b, s: t.aminmax(a, dim=1).max - a.aminmax()[0],
    **{
        f"scatter_reduce, {how}, {own}": lambda t, a, b, s, how=how, own=own: a.scatter_reduce(
            0, t.tensor(I), b[:2], how, include_self=own
        )
        for how in ("sum", "mean", "prod", "amax", "amin") for own in (True, False)
    },
    "scatter_reduce of ties": lambda t, a, b, s: t.scatter_reduce(
        (a * 0 + 1)[0], 0, t.tensor([1, 1, 3]), (b * 0 + 1)[0, :3] * b[0, 0] / b[0, 0], "amax"
    ) * b[0],
    "index_copy": lambda t, a, b, s: a.index_copy(0, t.tensor(J), b[:2]) + t.index_fill(a, 1, t.tensor(J), 2.0),
    "index_put": lambda t, a, b, s: a.index_put((t.tensor(J), t.tensor([1, 1])), b[0, :2]),
    "index_put added": lambda t, a, b, s: a.index_put((t.tensor([1, 1]),), b[:2], accumulate=True),
    "masked_scatter": lambda t, a, b, s: a.masked_scatter(a > 0, b * b),
    "select": lambda t, a, b, s: a.select(1, 2) + t.select(b, -1, 0),
    "unfold": lambda t, a, b, s: a.unfold(1, 2, 1) * b.unfold(-1, 2, 1),
    "unique": lambda t, a, b, s: t.unique(t.tensor([3, 1, 3]), return_counts=True)[1] * a[:2, :2],
    "runs": lambda t, a, b, s: a[0, 0] * t.unique_consecutive(t.tensor([3, 3, 1, 3]), return_counts=True)[1],
    "nonzero": lambda t, a, b, s: a[t.nonzero(a > 0, as_tuple=True)],
    "counts": lambda t, a, b, s: a[0] * t.bincount(t.tensor([0, 3, 3]), minlength=4) + t.histc(b.detach(), 4, 0, 2),
    "bucketize": lambda t, a, b, s: a * t.bucketize(b.detach(), t.tensor([0.5, 1.0]).double()),
    "angles": lambda t, a, b, s: t.deg2rad(a) + t.rad2deg(b) + t.frac(b),
    "signs": lambda t, a, b, s: t.copysign(b, a) * t.sgn(a) + t.heaviside(a.detach(), b.detach()),
    "fmax": lambda t, a, b, s: t.fmax(a, b) - t.fmin(a, b),
    "powers": lambda t, a, b, s: t.float_power(b, 3) + t.logaddexp2(a, b) + t.ldexp(a, t.tensor([2])),
    "special functions": lambda t, a, b, s: t.i0(a) + t.igamma(t.full_like(b, 1.5).detach(), b) + t.polygamma(1, b),
    "special by name": lambda t, a, b, s: t.special.expit(a) + t.special.gammaln(b) + t.special.erfcx(b),
    "renorm": lambda t, a, b, s: t.renorm(a, 2, 0, 1.0),
    "inner": lambda t, a, b, s: t.inner(a, b) + t.vdot(a[0], b[0]),
    "sums of products": lambda t, a, b, s: t.addmv(a[:, 0], s, b[:, 0], beta=0.5) + t.addr(s, a[:, 0], b[:, 0]),
    "addbmm": lambda t, a, b, s: t.addbmm(s, a[None, :, :3], b[None, :3, :3], alpha=2.0),
    "chains": lambda t, a, b, s: t.chain_matmul(s, a, b.T) + t.linalg.multi_dot([s, s, s]),
    "matrix functions": lambda t, a, b, s: t.matrix_exp(0.3 * s) + s.matrix_power(3) + t.linalg.matrix_exp(-s),
    "trapezoid": lambda t, a, b, s: t.trapezoid(a, dx=0.5) + t.trapz(b, dim=1),
    "covariances": lambda t, a, b, s: t.cov(a) + a.corrcoef(),
    "powers of a vector": lambda t, a, b, s: a * t.vander(A3(t), 4) * t.vander(A3(t), 4, increasing=True),
    "block_diag": lambda t, a, b, s: t.block_diag(a, s, b[0]),
    "products of sets": lambda t, a, b, s: t.cartesian_prod(a[0], b[0, :2])[:6] + t.combinations(a[0]),
    "turned": lambda t, a, b, s: t.rot90(s) + t.fliplr(s) - s.flipud() + t.diagflat(s[0]),
    "cut": lambda t, a, b, s: t.tensor_split(a, 3, dim=1)[0] + t.hsplit(b, 2)[1][:, :1] + t.vsplit(s, 3)[0].sum(),
    "complex": lambda t, a, b, s: t.view_as_real(t.complex(a, b) * t.polar(b, a)),
    "norms": lambda t, a, b, s: t.linalg.vector_norm(a, 3, dim=(0, 1)) + t.linalg.matrix_norm(s, "nuc"),
    "norms kept": lambda t, a, b, s: t.linalg.vector_norm(a, dim=1, keepdim=True) * t.linalg.vecdot(a, b)[:, None],
    "triangular": lambda t, a, b, s: t.linalg.solve_triangular(s.triu(), a, upper=True),
    "triangular from the right": lambda t, a, b, s: t.linalg.solve_triangular(s.tril(), a.T, upper=False, left=False),
    "triangular with ones": lambda t, a, b, s: t.linalg.solve_triangular(
        s, a.T, upper=False, left=False, unitriangular=True
    ),
    "least squares": lambda t, a, b, s: t.linalg.lstsq(a.T, b.T).solution,
    "cholesky_solve": lambda t, a, b, s: t.cholesky_solve(a, t.linalg.cholesky(s @ s.T)),
    "logdet": lambda t, a, b, s: t.logdet(s @ s.T) + t.slogdet(s)[1] + t.pinverse(s).sum(),
    "svd": lambda t, a, b, s: (lambda u, d, v: (u * d) @ v.T)(*t.svd(s)) + t.svd(s)[1],
    "transforms": lambda t, a, b, s: t.fft.ifftn(t.fft.fftn(a) * 2).real + t.fft.irfftn(t.fft.rfftn(b), b.shape),
    "words of NumPy": lambda t, a, b, s: a.sum(axis=1, keepdims=True) + t.cat([a, b], axis=0).mean(axis=0)
    + a.max(axis=1).values.sum() + t.stack([a, b], axis=0).std(axis=0),
    "synonyms": lambda t, a, b, s: t.multiply(a, b) + t.subtract(a, b) + t.arctan(a) + t.absolute(a) + a.divide(b),
    "questions": lambda t, a, b, s: a * a.nbytes * a.itemsize * a.stride(0) * t.is_floating_point(a) * a.is_cpu,
    "sum_to_size": lambda t, a, b, s: a.sum_to_size(1, 4) + a.where(a > 0, b),
    "bits": lambda t, a, b, s: a * t.bitwise_and(t.tensor(6), t.tensor(3)) * t.gcd(t.tensor(12), t.tensor(8)),
    "one-hot": lambda t, a, b, s: a * t.zeros(3, 4, dtype=t.float64).scatter_(1, t.tensor([[1], [0], [3]]), 1.0),
    "in place": lambda t, a, b, s: (a * 1).lerp_(b, 0.3).addcmul_(a, b, value=0.5).addcdiv_(a, b).clamp_min_(-0.5),
    "more in place": lambda t, a, b, s: (a * 1).tril_().erf_().index_add_(0, t.tensor(J), b[:2]).sub_(b, alpha=0.1),
    "put in place": lambda t, a, b, s: (a * 1).scatter_add_(0, t.tensor(I), b[:2]).cumsum_(1).masked_fill_(b > 1, 0.0),
    "logic in place": lambda t, a, b, s: a * (a > 0).logical_and_(b > 0.5).logical_not_(),
    "new shapes in place": lambda t, a, b, s: (a * b).unsqueeze_(0).transpose_(1, 2).squeeze_(0).t_(),
    "filled in place": lambda t, a, b, s: (s * 1).fill_diagonal_(2.0).index_fill_(0, t.tensor([1]), 0.5),
    "distances": lambda t, a, b, s: t.cdist(a, b, p=1) + t.dist(a, b, p=3),
    "batches": lambda t, a, b, s: t.baddbmm(a[None, :, :3], a[None], b.T[None], beta=0.5, alpha=2.0),
    "einsum of a list": lambda t, a, b, s: t.einsum("ij,ij->i", [a, b]),
    "numbers": lambda t, a, b, s: a * t.where(b > 1, 1.0, -1.0) + t.where(b > 1, 2, 3),
    "rounded": lambda t, a, b, s: a * t.round(b, decimals=1).detach() + t.round(b).detach(),
    "cubic": lambda t, a, b, s: t.nn.functional.interpolate(a[None, None], size=(5, 9), mode="bicubic"),
    "cubic, corners": lambda t, a, b, s: t.nn.functional.interpolate(
        a[None, None], scale_factor=2, mode="bicubic", align_corners=True
    ),
    "areas": lambda t, a, b, s: t.nn.functional.interpolate(a[None, None], size=(2, 3), mode="area"),
}  # fmt: skip


DTYPES = {
    "where": lambda t: t.where(t.ones(2) > 0, 1.0, -1.0),
    "where of whole numbers": lambda t: t.where(t.ones(2) > 0, 1, 0),
    "where of answers": lambda t: t.where(t.ones(2) > 0, True, False),
    "Tensor": lambda t: t.Tensor([[1, 2], [3, 4]]),
    "Tensor of a shape": lambda t: t.Tensor(2, 3) * 0,
    "FloatTensor": lambda t: t.FloatTensor([1, 2]),
    "LongTensor": lambda t: t.LongTensor([1, 2]),
    "randint of a size": lambda t: t.randint(1, size=(2, 3)),
    "a loss in older words": lambda t: t.nn.functional.mse_loss(t.tensor(A), 2 * t.tensor(A), size_average=False),
    "a loss of each in older words": lambda t: t.nn.L1Loss(reduce=False)(t.tensor(A), 2 * t.tensor(A)),
    "a loss of vectors in older words": lambda t: t.nn.functional.triplet_margin_loss(
        t.tensor(A), 2 * t.tensor(A), t.tensor(A) + 1, size_average=True
    ),
    "a type of tensors": lambda t: t.tensor(A).type(t.LongTensor),
    "a type by its name": lambda t: t.tensor([1, 0]).type("torch.ByteTensor"),
    "covariance": lambda t: t.cov(t.eye(3)) + t.corrcoef(t.eye(3)),
    "cut at places": lambda t: t.tensor_split(t.tensor(A), (1, 2), 1)[1],
    "one set": lambda t: t.cartesian_prod(t.tensor(A[0])),
    "norm of all": lambda t: t.linalg.vector_norm(t.tensor(A), 3) + t.linalg.vector_norm(t.tensor(A), keepdim=True),
    "rank": lambda t: t.linalg.matrix_rank(t.tensor(A)),
    "special softmax": lambda t: t.special.softmax(t.tensor(A), 1),
    "one step": lambda t: t.linspace(1, 5, 1),
    "logarithmic steps": lambda t: t.logspace(0, 2, 5, dtype=t.float64),
    "normal numbers": lambda t: t.normal(t.tensor(A), 1e-30),
    "places": lambda t: t.where(t.tensor(A) > 0)[1],
    "larger": lambda t: t.max(t.tensor(A), t.tensor(B)),
    "norm of rows": lambda t: t.norm(t.tensor(A), p=3, dim=1) + t.tensor(A).norm(3.0, 1),
    "as another": lambda t: t.tensor(A).to(t.ones(1)),
    "as a type": lambda t: t.tensor(A).type(t.float32),
    "bits turned": lambda t: t.bitwise_not(t.tensor([1, 2])),
    "signs of zero": lambda t: t.signbit(t.tensor(A)) | t.isreal(t.tensor(A)),
    "infinities": lambda t: t.isposinf(t.tensor([np.inf, 1.0])) | t.isneginf(t.tensor([-1.0, -np.inf])),
    "result_type": lambda t: t.ones(1, dtype=t.result_type(t.tensor([1]), 2.0)),
    "promote_types": lambda t: t.ones(1, dtype=t.promote_types(t.int64, t.float32)),
    "draws in place": lambda t: t.ones(4).uniform_(1, 1.0000001) + t.ones(4).normal_(2, 0) + t.ones(4).random_(3, 4),
    "a flat number": lambda t: t.flatten(t.tensor(2.0)),
    "broadcast_to": lambda t: t.broadcast_to(t.tensor(A[0]), (3, 4)),
    "one-hot rows": lambda t: t.nn.functional.one_hot(t.tensor([0, 2])),
    "instance norm": lambda t: t.nn.functional.instance_norm(t.tensor(A)[None]),
    "bags": lambda t: t.nn.functional.embedding_bag(t.tensor([0, 1, 1, 0]), t.tensor(A), t.tensor([0, 1])),
    "unpooled": lambda t: t.nn.functional.max_unpool2d(
        *t.nn.functional.max_pool2d(t.arange(36.0).reshape(1, 1, 6, 6), 2, padding=1, return_indices=True), 2, padding=1
    ),
    "loss of whole numbers": lambda t: t.nn.functional.mse_loss(t.tensor(A), t.ones(3, 4, dtype=t.int64)),
}


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_are_torchs(name):
    mine, theirs = (DTYPES[name](t).numpy() for t in (fad.eager, torch))
    assert mine.dtype == theirs.dtype
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)


SAID = {
    "size": lambda t: (t.ones(2, 3).shape.numel(), t.numel(t.ones(2, 3)), tuple(t.broadcast_shapes((2, 1), (3,)))),
    "questions": lambda t: (t.is_tensor(t.ones(1)), t.is_tensor(1), t.is_complex(t.ones(1)), t.is_nonzero(t.ones(1))),
    "contains": lambda t: (1.0 in t.ones(2), 2.0 in t.ones(2), t.ones(1) in t.ones(2)),
    "types": lambda t: (t.ones(1).type(), t.ones(1, dtype=t.float64).type(), (t.ones(1) > 0).type()),
    "complex": lambda t: complex(t.tensor(2.0)),
    "dictionary": lambda t: [*t.nn.ModuleDict({"a": t.nn.ReLU()}).keys()],
    "deleted": lambda t: (lambda m: (delattr(m, "bias"), len(list(m.parameters()))))(t.nn.Linear(2, 2)),
    "nodes": lambda t: (lambda x: (x[0].grad_fn.name(), x.sum(0).grad_fn.name()))(t.ones(2, 2, requires_grad=True)),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_no_tensor_is_torchs(name):
    assert SAID[name](fad.eager) == SAID[name](torch)


def run(api, program):
    xs = [api.tensor(x, requires_grad=True) for x in (A, B, S)]
    y = program(api, *xs)
    (y * api.sin(y)).sum().backward()
    return [y.detach().numpy(), *(np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in xs)]


@pytest.mark.filterwarnings("ignore")  # of PyTorch's: of functions that are to go
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_agree_with_torch(name):
    for mine, theirs in zip(run(fad.eager, CALLS[name]), run(torch, CALLS[name]), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n", [-3, -2, -1, 0.5, 2, 3, 3.0, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_by_python_numbers_are_torchs(n, dtype):
    a = np.random.default_rng(0).uniform(0.3, 3.0, 500).astype(dtype)
    x, y = fad.eager.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    for t, u in ((x**n, y**n), (fad.eager.pow(x, n), torch.pow(y, n))):
        np.testing.assert_allclose(t.detach().numpy(), u.detach().numpy(), rtol=0 if n in (-2, 3) else 1e-6)
        t.sum().backward()
        u.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=2e-6 if dtype == "float32" else 1e-13)
