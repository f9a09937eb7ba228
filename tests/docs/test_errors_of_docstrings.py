"""The errors that docstrings name are raised: by wrong values of each parameter, and by a wrong call of each name."""

import importlib
import inspect
import re
import warnings

import numpy as np
from each import each
from numpy_versions import BEFORE_2_4, BEFORE_2_5

import fad
from fad.core.primitives.docstring_sections import RAISES, entries, errors_of_parameters, owners_of
from fad.core.primitives.primitive import REGISTRY, Primitive
from fad.core.primitives.samples import Sampler
from fad.scipy.versions import SINCE_1_18

for _part in fad.scipy.__all__:
    importlib.import_module(f"fad.scipy.{_part}")


def errors_of(text):
    """Return the names of errors in the section of a docstring."""
    section = re.search(r"\nRaises\n-+\n(.*?)(?=\n\n[A-Z][\w ]+\n---|\Z)", text or "", re.DOTALL)
    return set(re.findall(r"^(\w+)$", section[1] if section else "", re.MULTILINE))


def raised_by(run):
    """Return the names of the error that a call raises and of its bases, or nothing."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run()
    except Exception as error:
        return {c.__name__ for c in type(error).__mro__} - {"object", "BaseException", "Exception"}
    return set()


# --- by parameter -----------------------------------------------------------------------------------------------------

WRONG = {
    "axis": 99, "axes": (99, 98), "axis1": 99, "source": 99, "dtype": "no dtype", "order": "no order",
    "kind": "no kind", "mode": "no mode", "method": "no method", "norm": "no norm", "shape": (-5, 7), "type": 9,
    "k": "a", "n": -3, "num": -1, "deg": -2,
}  # fmt: skip


def cases():
    """Give the functions with samples, with each parameter whose name says which error a wrong value leads to."""
    for op in REGISTRY.values():
        function = None if isinstance(op, Primitive) or op.samples is None or not op.numpy else op.function
        if function is None or isinstance(op.numpy[0], list) or not inspect.getdoc(function):
            continue  # the methods of ufuncs have no page of their own
        for name in inspect.signature(function).parameters:
            found = list(errors_of_parameters([name], owners_of(function)))
            other = BEFORE_2_4 and op.name == "trim_zeros"  # which names another error there
            other = other or (not BEFORE_2_5 and (op.name, name) == ("rot90", "k"))
            other = other or (SINCE_1_18 and (op.name, name) == ("scipy.stats.moment", "order"))
            if found and name in WRONG and not other:
                yield op, name, found[0][0]


CASES = list(cases())


@each("op, name, error", CASES, ids=[f"{op.name}-{name}" for op, name, _ in CASES])
def test_a_wrong_value_of_a_parameter_raises_the_error_that_help_names(op, name, error):
    signature = inspect.signature(op.function)
    assert error in errors_of(inspect.getdoc(op.function))
    for call in list(op.samples(Sampler(seed=0)))[:2]:
        position = list(signature.parameters).index(name)
        args, kwargs = list(call.args), dict(call.kwargs)
        if position < len(args):
            args[position] = WRONG[name]
        else:
            kwargs[name] = WRONG[name]
        assert error in raised_by(lambda args=args, kwargs=kwargs: op.function(*args, **kwargs))


def test_every_entry_of_the_table_names_a_parameter_that_some_function_has():
    parameters = {
        name
        for op in REGISTRY.values()
        if not isinstance(op, Primitive)
        for name in inspect.signature(op.function).parameters
    }
    assert {key.rpartition(".")[2] for key in entries(RAISES)} <= parameters


def test_operations_name_the_dtypes_that_their_ufuncs_refuse():
    special = fad.scipy.special
    assert "An operand is complex, a string or a date." in fad.numpy.arctan2.__doc__
    assert "An operand is a string or a date." in fad.numpy.sin.__doc__
    assert "An operand is a string or a date." in special.jv.__doc__
    assert "TypeError" not in errors_of(fad.numpy.equal.__doc__)
    assert raised_by(lambda: fad.numpy.arctan2(1j, 1.0)) >= {"TypeError"}
    assert raised_by(lambda: fad.numpy.sin(np.array(["a"]))) >= {"TypeError"}
    assert raised_by(lambda: special.jv(np.array(["a"]), 1.0)) >= {"TypeError"}
    assert special.jv(1, 1j).dtype.kind == "c"


DECLARED = {name: op for name, op in REGISTRY.items() if isinstance(op, Primitive) and op.declared}


@each("op", DECLARED.values(), ids=DECLARED)
def test_operations_name_the_operands_without_a_derivative(op):
    lacking = [rule for rule in op.declared if isinstance(rule, str)]
    assert ("DerivativeError" in errors_of(op.__doc__)) is bool(lacking)
    assert [rule for rule in lacking if rule not in op.__doc__] == []


# --- by name ----------------------------------------------------------------------------------------------------------

# A wrong call of each name whose errors are written down for it alone.
CALLS = """
numpy.clip(o(2), np.zeros(3), 1.0)
numpy.column_stack((o((2, 2)), o((3, 2))))
numpy.dstack((o((2, 2)), o((3, 2))))
numpy.broadcast_arrays(o(2), o(3))
numpy.allclose(o(2), o(3))
numpy.isclose(o(2), o(3))
numpy.divmod(o(2), o(3))
numpy.float_power(o(2), o(3))
numpy.dsplit(o(4), 2)
numpy.vsplit(o(4), 2)
numpy.hsplit(o(3), 2)
numpy.extract(o(3), o(2))
numpy.ediff1d(o(3, int), to_end=1.5)
numpy.nonzero(np.array(1.0))
numpy.nan_to_num(np.float64(1.0), copy=False)
numpy.c_[o(2), o(3)]
numpy.r_[o((2, 2)), o((3, 3))]
numpy.r_["zz", o(2)]
numpy.polyadd(o((2, 2)), o(3))
numpy.polysub(o((2, 2)), o(3))
numpy.polymul(o((2, 2)), o(3))
numpy.emath.logn(o(2), o(3))
numpy.emath.power(o(2), o(3))
numpy.fliplr(o(2))
numpy.flipud(np.array(1.0))
numpy.frexp(o(2) * 1j)
numpy.modf(o(2) * 1j)
numpy.isneginf(o(2) * 1j)
numpy.isposinf(o(2) * 1j)
numpy.histogram(o(3), bins=0)
numpy.histogram_bin_edges(o(3), bins=0)
numpy.histogram2d(o(3), o(3), bins=0)
numpy.histogramdd(o((3, 2)), bins=0)
numpy.ix_(o((2, 2), int))
numpy.matrix_transpose(o(2))
numpy.linalg.matrix_transpose(o(2))
numpy.linalg.diagonal(o(2))
numpy.linalg.matrix_norm(o(2))
numpy.meshgrid(o(2), indexing="ab")
numpy.piecewise(o(2), [np.array([True, False]), np.array([False, True])], [])
numpy.polyder(o(2), -1)
numpy.polyint(o(2), -1)
numpy.resize(o(2), -1)
numpy.searchsorted(o(2), 1.0, side="up")
numpy.select([np.array([True])], [])
numpy.tile(o(2), -1)
numpy.vander(o((2, 2)))
numpy.vdot(o(2), o(3))
numpy.where(np.array([True]), 1.0)
numpy.round(o(2), "a")
numpy.around(o(2), "a")
numpy.sign(np.array(["a"]))
numpy.conj(np.array(["a"]))
numpy.conjugate(np.array(["a"]))
numpy.diag_indices_from(o(2))
numpy.linalg.det(o(2))
numpy.linalg.slogdet(o(2))
numpy.linalg.svdvals(o(2))
numpy.linalg.cond(o((0, 0)))
numpy.linalg.matrix_rank(o((2, 2)), tol=1.0, rtol=1.0)
numpy.linalg.multi_dot([o(2)])
numpy.linalg.outer(o((2, 2)), o(2))
scipy.linalg.coshm(o((2, 3)))
scipy.linalg.cosm(o((2, 3)))
scipy.linalg.sinhm(o((2, 3)))
scipy.linalg.sinm(o((2, 3)))
scipy.linalg.tanhm(o((2, 3)))
scipy.linalg.tanm(o((2, 3)))
scipy.linalg.sqrtm(o((2, 3)))
scipy.linalg.logm(o((2, 3)))
scipy.linalg.expm(o((2, 3)))
scipy.linalg.fractional_matrix_power(o((2, 3)), 0.5)
scipy.linalg.diagsvd(o(4), 2, 3)
scipy.linalg.khatri_rao(o((2, 3)), o((2, 4)))
scipy.linalg.leslie(o(3), o(3))
scipy.linalg.matmul_toeplitz(o(3), o(4))
scipy.linalg.orth(o(3))
scipy.linalg.orth(o((2, 2)) * np.nan)
scipy.linalg.polar(o((2, 2)), side="up")
scipy.linalg.solve_continuous_lyapunov(o((2, 3)), o((2, 2)))
scipy.signal.lfilter(o((2, 2)), o(2), o(4))
scipy.signal.lfilter_zi(o((2, 2)), o(2))
scipy.signal.lfiltic(o(2), 0 * o(2), o(2))
scipy.signal.sosfilt_zi(o(6))
scipy.signal.istft(o(3) * 1j)
scipy.signal.butter(3, 2.0)
scipy.signal.ellip(3, 1.0, 30.0, 0.0)
scipy.signal.bessel(3, 0.3, "band")
scipy.signal.iirnotch(2.0, 3.0)
scipy.signal.bilinear(o((2, 2)), o(2))
scipy.signal.tf2zpk(o(2), 0 * o(2))
scipy.signal.zpk2sos(o(1) * 1j, o(2), 1.0)
scipy.signal.sos2tf(o(6))
scipy.signal.lp2bp_zpk(o(3), o(2), 1.0)
scipy.signal.freqz(o(2), worN=-1)
scipy.signal.freqz_sos(o((2, 5)))
scipy.signal.freqs(o(2), o(2), -3)
scipy.signal.freqs_zpk(o(1), o(2), o(2))
scipy.signal.freqz_zpk(o(2), o(2), 1.0, fs=None)
scipy.signal.zpk2tf(o(2), o((2, 3)), 1.0)
scipy.signal.group_delay((o(2), o(2)), fs=None)
scipy.signal.find_peaks(o((2, 2)))
scipy.signal.peak_widths(o((2, 2)), [0])
scipy.signal.chirp(o(2), 0.0, 1.0, 2.0, method="log")
scipy.signal.gausspulse(o(2), -1.0)
scipy.signal.lombscargle(o(2), o(3), o(2))
scipy.signal.medfilt(o(3), 2)
scipy.signal.wiener(o((3, 3)), (3, 3, 3))
scipy.ndimage.mean(o(3), np.ones(2, int))
scipy.stats.scoreatpercentile(o(3), 120)
scipy.stats.linregress(o(3), o(3))
scipy.stats.pearsonr(o(1), o(1))
scipy.stats.trim_mean(o(3), 0.9)
scipy.stats.ttest_ind(o(3), o(3), trim=0.7)
scipy.stats.gaussian_kde(o(1))
scipy.spatial.distance.braycurtis(o((2, 2)), o(2))
scipy.spatial.distance.canberra(o((2, 2)), o(2))
scipy.spatial.distance.chebyshev(o((2, 2)), o(2))
scipy.spatial.distance.cityblock(o((2, 2)), o(2))
scipy.spatial.distance.correlation(o((2, 2)), o(2))
scipy.spatial.distance.cosine(o((2, 2)), o(2))
scipy.spatial.distance.euclidean(o((2, 2)), o(2))
scipy.spatial.distance.minkowski(o((2, 2)), o(2))
scipy.spatial.distance.sqeuclidean(o((2, 2)), o(2))
scipy.spatial.distance.mahalanobis(o((2, 2)), o(2), np.eye(2))
scipy.spatial.distance.seuclidean(o(2), o(2), o(3))
scipy.spatial.distance.squareform(o(2))
scipy.spatial.distance.pdist(o(2))
scipy.special.softplus(o(2) * 1j)
scipy.special.lambertw(o(2), o(3))
scipy.special.legendre_p(np.arange(2), o(3))
scipy.special.sph_harm_y(1, np.arange(2), 1.0, o(3))
scipy.special.spherical_in(np.arange(2), o(3))
scipy.special.spherical_jn(np.arange(2), o(3))
scipy.special.spherical_kn(np.arange(2), o(3))
scipy.special.spherical_yn(np.arange(2), o(3))
scipy.special.zeta(o(2) * 2, o(3))
scipy.special.wofz(np.array(["a"]))
scipy.special.comb(2.5, 1.5, exact=True)
scipy.special.perm(2.5, 1.5, exact=True)
scipy.special.factorial(2.5, exact=True)
scipy.special.multigammaln(0.1, 3)
fad.associative_scan(lambda a, b: a + b, (o(2), o(3)))
fad.custom_jvp(lambda x: x)(1.0)
fad.device_put(o(2), "nonsense")
fad.elementwise_grad(lambda x: x)(2)
fad.fori_loop(0, 3, lambda i, c: o(i + 1), o(1))
fad.hessian(lambda x: x)(2)
fad.hvp(lambda x: x.sum(), (o(2),), (o(3),))
fad.hvp(lambda x: x, (o(2),), (o(2),))
fad.jacfwd(lambda x: x)(o(2, int))
fad.jacrev(lambda x: x)(o(2, int))
fad.jacrev(lambda x: x)(o(2, complex))
fad.jacobian(lambda x: x, mode="up")
fad.jacobian(lambda x: x, argnums=3)(o(2))
fad.linearize(lambda x: x, 2)
fad.linearize(lambda x: x, o(2))[1](o(3))
fad.make_graph(lambda x: "a")(1.0)
fad.saved(lambda x: "a")(1.0)
fad.map(lambda x: x, (o(2), o(3)))
fad.switch(0, [], 1.0)
fad.value_and_grad(lambda x: x)(2)
fad.value_and_grad(lambda x: x)(o(2))
fad.vhp(lambda x: x.sum(), (o(2),), o(3))
fad.vhp(lambda x: x, (o(2),), o(2))
tree.add((1.0,), (1.0, 2.0))
tree.vdot((1.0,), (1.0, 2.0))
tree.sub((1.0,), (1.0, 2.0))
tree.map(lambda a, b: a, (1.0,), (1.0, 2.0))
tree.map_with_path(lambda p, a, b: a, (1.0,), (1.0, 2.0))
tree.unflatten(tree.structure((1.0, 2.0)), [1.0])
tree.register_dataclass(int)
tree.register_node(dict, lambda x: x, lambda x: x)
tree.transpose(tree.structure((1,)), tree.structure([1, 2]), {"a": 1})
tree.reduce(lambda a, b: a, ())
scipy.integrate.odeint(lambda y, t: o(3), o(2), np.arange(2.0))
scipy.integrate.odeint(lambda y, t: -y, 1.0, np.array([0.0, 1.0, 0.5]))
scipy.integrate.fixed_quad(lambda x: x, 0.0, np.inf)
scipy.integrate.nquad(lambda x: x, [(0.0, 1.0)], opts=[{}, {}])
scipy.optimize.brentq(lambda x: x, 1.0, 2.0)
scipy.optimize.least_squares(lambda x: x, o(2), bounds=(2, 3))
scipy.optimize.least_squares(lambda x: x, o(2), method="up")
scipy.optimize.newton(lambda x: x * x + 1, 1.0, maxiter=3)
scipy.optimize.root_scalar(lambda x: x, method="up")
scipy.interpolate.CubicSpline(o(3), o(3))
scipy.interpolate.Akima1DInterpolator(o(3), o(3))
scipy.interpolate.PchipInterpolator(o(3), o(3))
scipy.interpolate.CubicHermiteSpline(o(3), o(3), o(3))
scipy.interpolate.BSpline(o(3), o(3), 3)
scipy.interpolate.PPoly(o(3), o(3))
scipy.interpolate.interp1d(o(3), o(4))
scipy.interpolate.interpn((o(3),), o(3), o(1))
scipy.interpolate.RegularGridInterpolator((o(3),), o(3))
scipy.interpolate.make_interp_spline(o(3), o(3))
scipy.sparse.csr_array((o(2), (o(3, int), o(2, int))), shape=(2, 2))
scipy.sparse.csc_array((o(2), (o(3, int), o(2, int))), shape=(2, 2))
scipy.sparse.coo_array((o(2), (o(3, int), o(2, int))), shape=(2, 2))
scipy.sparse.from_scipy(o(2))
scipy.sparse.matmul(o((2, 2)), o(2))
scipy.sparse.linalg.gmres(scipy.sparse.csr_array((o(2), (np.arange(2), np.arange(2))), shape=(2, 2)), o(3))
scipy.sparse.linalg.bicgstab(scipy.sparse.csr_array((o(2), (np.arange(2), np.arange(2))), shape=(2, 2)), o(3))
scipy.sparse.linalg.bicg(scipy.sparse.csr_array((o(2), (np.arange(2), np.arange(2))), shape=(2, 2)), o(3))
scipy.sparse.linalg.cgs(scipy.sparse.csr_array((o(2), (np.arange(2), np.arange(2))), shape=(2, 2)), o(3))
scipy.sparse.linalg.tfqmr(scipy.sparse.csr_array((o(2), (np.arange(2), np.arange(2))), shape=(2, 2)), o(3))
scipy.sparse.linalg.lgmres(scipy.sparse.csr_array((o(2), (np.arange(2), np.arange(2))), shape=(2, 2)), o(3))
scipy.sparse.linalg.gcrotmk(scipy.sparse.csr_array((o(2), (np.arange(2), np.arange(2))), shape=(2, 2)), o(3))
optim.schedules.joined([optim.schedules.constant(1.0)], [3])
fad.jacobian(lambda x: x, mode="up")
nn.GRU(2, 3)(o((1, 4, 5)))
nn.LSTM(2, 3)(o((1, 4, 5)))
nn.RNN(2, 3, nonlinearity="up")
nn.GRUCell(2, 3)(o((1, 5)), o((1, 3)))
nn.LSTMCell(2, 3)(o((1, 5)), (o((1, 3)), o((1, 3))))
nn.RNNCell(2, 3, nonlinearity="up")
nn.AvgPool1d(5)(o((1, 2, 3)))
nn.MaxPool2d(5)(o((1, 2, 3, 3)))
nn.AvgPool2d(2)(o((3,)))
nn.MaxPool3d(2)(o((3,)))
nn.AlphaDropout(2.0)
nn.Dropout(2.0)
nn.Dropout2d(-2.0)
nn.BatchNorm1d(3)(o((4, 5)))
nn.BatchNorm2d(3)(o((4, 3)))
nn.SyncBatchNorm(3)(o((4, 5)))
nn.InstanceNorm1d(3)(o((4, 5, 6)))
nn.GroupNorm(2, 3)
nn.LayerNorm(3)(o((4, 5)))
nn.RMSNorm(3)(o((4, 5)))
nn.Bilinear(2, 3, 4)(o((5, 3)), o((5, 3)))
nn.Linear(2, 3)(o((5, 3)))
nn.ChannelShuffle(2)(o((1, 3, 2, 2)))
nn.ReplicationPad1d(1)(o((3,)))
nn.ConstantPad2d(1, 0.0)(o((3,)))
nn.ZeroPad3d((1, 2))
nn.ZeroPad3d((1, 2, 3))
nn.ReflectionPad1d((1, 2, 3))
nn.ConstantPad1d((1, 2, 3), 0.0)
nn.CircularPad1d((1, 2, 3))
nn.Conv1d(3, 4, 1, groups=2)
nn.Conv2d(3, 4, 1)(o((1, 2, 5, 5)))
nn.Conv2d(3, 4, 1, padding_mode="up")
nn.ConvTranspose2d(3, 4, 1, groups=2)
nn.ConvTranspose2d(3, 4, 1)(o((1, 2, 5, 5)))
nn.Embedding(3, 2, padding_idx=5)
nn.Embedding(3, 2)(np.array([5]))
nn.EmbeddingBag(3, 2, mode="up")(np.array([[1]]))
nn.EmbeddingBag(3, 2)(np.array([[5]]))
nn.Unflatten(1, (2, 2))(o((2, 3)))
nn.Fold(4, 2)(o((1, 3, 5)))
nn.Unfold(5)(o((1, 2, 3, 3)))
nn.GLU(1)(o((2, 3)))
nn.GELU("up")(o(2))
nn.Softmax(5)(o(2))
nn.LogSoftmax(5)(o(2))
nn.Softmin(5)(o(2))
nn.Softmax2d()(o(2))
nn.PReLU(3)(o((2, 4)))
nn.MultiheadAttention(5, 2)
nn.PixelShuffle(2)(o((1, 3, 2, 2)))
nn.PixelUnshuffle(2)(o((1, 3, 3, 3)))
nn.Sequential(3)(o(2))
nn.Module()(o(2))
nn.Transformer(5, 2)
nn.TransformerEncoderLayer(5, 2)
nn.TransformerDecoderLayer(5, 2)
nn.TransformerEncoderLayer(4, 2, activation="up")
nn.Upsample()
nn.Upsample(2, mode="up")(o((1, 1, 2, 2)))
nn.UpsamplingBilinear2d()
nn.UpsamplingNearest2d()
nn.LocalResponseNorm(2)(o(3))
nn.functional.mse_loss(o(2), o(3))
nn.functional.mse_loss(o(2), o(2), reduction="up")
nn.functional.binary_cross_entropy(o(2), o(3))
nn.functional.binary_cross_entropy(o(2), o(2), reduction="up")
nn.functional.cosine_embedding_loss(o((2, 3)), o((2, 4)), o(2))
nn.functional.cosine_embedding_loss(o((2, 3)), o((2, 3)), o(2), reduction="up")
nn.functional.cosine_similarity(o((2, 3)), o((2, 4)))
nn.functional.pairwise_distance(o((2, 3)), o((2, 4)))
nn.functional.kl_div(o(2), o(3))
nn.functional.nll_loss(o((2, 3)), np.array([0, 5]))
nn.functional.nll_loss(o((2, 3)), np.array([0, 1]), reduction="up")
nn.functional.multi_margin_loss(o((2, 3)), np.array([0, 5]))
nn.functional.multi_margin_loss(o((2, 3)), np.array([0, 1]), reduction="up")
nn.functional.triplet_margin_loss(o((2, 3)), o((2, 4)), o((2, 3)))
nn.functional.triplet_margin_loss(o((2, 3)), o((2, 3)), o((2, 3)), reduction="up")
nn.functional.triplet_margin_with_distance_loss(o((2, 3)), o((2, 3)), o((2, 3)), reduction="up")
nn.functional.gaussian_nll_loss(o(2), o(3), o(2))
nn.functional.gaussian_nll_loss(o(2), o(2), o(2), reduction="up")
nn.functional.hinge_embedding_loss(o(2), o(2), reduction="up")
nn.functional.margin_ranking_loss(o(2), o(2), o(2), reduction="up")
nn.functional.multilabel_soft_margin_loss(o((2, 2)), o((2, 2)), reduction="up")
nn.functional.soft_margin_loss(o(2), o(3))
nn.functional.batch_norm(o((2, 3, 4)), o(2), o(2))
nn.functional.group_norm(o((2, 3, 4)), 2)
nn.functional.instance_norm(o((2, 3, 4)), o(2))
nn.functional.layer_norm(o((2, 3)), o(2))
nn.functional.rms_norm(o((2, 3)), o(2))
nn.functional.normalize(o(3), 5)
nn.functional.adaptive_avg_pool1d(o((1, 2, 3)), -1)
nn.functional.adaptive_max_pool1d(o((1, 2, 3)), -1)
nn.functional.adaptive_max_pool2d(o((3)), 1)
nn.functional.adaptive_avg_pool2d(o((3)), 1)
nn.functional.avg_pool1d(o((1, 2, 3)), 5)
nn.functional.max_pool2d(o((1, 2, 3, 3)), 5)
nn.functional.channel_shuffle(o((1, 3, 2, 2)), 2)
nn.functional.fold(o((1, 3, 5)), 4, 2)
nn.functional.unfold(o((1, 2, 3, 3)), 5)
nn.functional.interpolate(o((1, 2, 3, 3)))
nn.functional.interpolate(o((1, 2, 3, 3)), 2, mode="up")
nn.functional.pad(o(3), (1, 2, 3))
nn.functional.pad(o(3), (1, 2), mode="up")
nn.functional.pixel_shuffle(o((1, 3, 2, 2)), 2)
nn.functional.pixel_unshuffle(o((1, 3, 3, 3)), 2)
nn.functional.affine_grid(o((2, 2)), (1, 1, 2, 2))
nn.functional.grid_sample(o((2, 2)), o((2, 2)))
nn.functional.grid_sample(o((1, 1, 2, 2)), o((1, 2, 2, 2)), mode="up")
nn.functional.grid_sample(o((1, 1, 2, 2)), o((1, 2, 2, 2)), padding_mode="up")
nn.functional.alpha_dropout(o(2), 2.0, key=key)
nn.functional.dropout(o(2), 2.0, key=key)
nn.functional.dropout2d(o((1, 1, 2, 2)), 2.0, key=key)
nn.functional.attention_weights(o((2, 3)), o((2, 4)))
nn.functional.scaled_dot_product_attention(o((2, 3)), o((2, 4)), o((2, 4)))
nn.functional.bilinear(o((2, 3)), o((2, 3)), o((2, 2, 2)))
nn.functional.linear(o((2, 3)), o((2, 2)))
nn.functional.embedding(np.array([5]), o((2, 2)))
nn.functional.embedding_bag(np.array([5]), o((2, 2)), np.array([0]))
nn.functional.embedding_bag(np.array([1]), o((2, 2)), np.array([0]), mode="up")
nn.functional.gelu(o(2), "up")
nn.functional.glu(o(3))
nn.functional.softmax(o(2), 5)
nn.functional.log_softmax(o(2), 5)
nn.functional.softmin(o(2), 5)
nn.functional.gumbel_softmax(o(2), axis=5, key=key)
nn.functional.one_hot(np.array([5]), 3)
nn.functional.prelu(o((2, 4)), o(3))
nn.init.dirac((2,))
nn.init.kaiming_normal(key, (2,))
nn.init.kaiming_normal(key, (2, 3), mode="up")
nn.init.xavier_normal(key, (2,))
nn.init.zeros((-2,))
nn.init.ones((-2,))
nn.init.constant(1.0, (-2,))
nn.init.calculate_gain("up")
nn.init.fans((2,))
nn.init.next_key("a")
nn.init.uniform("a", (2,))
optim.Adam(o(2), betas=(2, 2))
optim.SGD(o(2), lr=-1)
optim.SGD(o(2), nesterov=True)
optim.Adadelta(o(2), rho=2.0)
optim.Rprop(o(2), etas=(2, 2))
optim.Lion(o(2), betas=(2, 2))
optim.LBFGS(o(2), lr=-1)
optim.EMA(o(2), decay=2.0)
optim.Adam(o(2), weight_decay=-1)
optim.sharded(optim.LBFGS(o(2)))
optim.check_finite(np.nan, 1)
optim.clip_by_global_norm(o(2) * np.nan, 1.0)
optim.global_norm(("a",))
optim.Adam(o(2)).step(o(3))
random.normal(key, (2,), int)
random.key("a")
random.split(1.0)
random.fold_in(1.0, 2)
random.bits(1.0)
random.bits(key, (-1,))
random.bernoulli(1.0)
random.bernoulli(key, 0.5, (-1,))
random.uniform(key, (-1,))
random.fold_in(key, 1.5)
random.bernoulli(key, 1j)
random.truncated_normal(key, 2.0, 1.0)
random.randint(key, (2,), 3, 1)
random.choice(key, 3, (5,), replace=False)
random.permutation(key, o(3), axis=4)
random.poisson(key, -1.0)
random.gamma(key, 1j)
random.beta(key, 1j, 1.0)
random.t(key, 1j)
random.dirichlet(key, 1j * o(2))
random.categorical(key, o(2), axis=4)
random.multivariate_normal(key, o(2), -np.eye(2))
random.multivariate_normal(key, o(3), np.eye(2))
random.rademacher(key, (2,), int)
random.uniform(key, (2,), int)
"""


def names():
    parts = ("nn", "optim", "random", "tree", "numpy", "scipy")
    return {"np": np, "fad": fad, "o": np.ones, "key": fad.random.key(0), **{p: getattr(fad, p) for p in parts}}


# SciPy takes several vectors at once there since 1.18, and gives a line through points of one x.
TAKEN_SINCE_1_18 = (
    "scipy.stats.linregress(o(3)", "scipy.spatial.distance.euclidean(o((2, 2))",
    "scipy.spatial.distance.minkowski(o((2, 2))", "scipy.spatial.distance.sqeuclidean(o((2, 2))",
)  # fmt: skip


@each("text", [x for x in CALLS.strip().splitlines() if not (SINCE_1_18 and x.startswith(TAKEN_SINCE_1_18))])
def test_a_wrong_call_raises_an_error_that_the_docstring_names(text):
    known = names()
    thing = eval(re.match(r"[\w.]+", text)[0], known)
    assert raised_by(lambda: eval(text, known)) & errors_of(inspect.getdoc(thing))
