"""Large products by own code: panels of one factor against blocks of rows of the other."""

import numpy as np
import pytest
from natively import compiled

from fad.compile.machine.cpu import register_bytes

pytest.importorskip("llvmlite")
if register_bytes() != 64:
    pytest.skip("panels are for CPUs with vectors of 64 bytes", allow_module_level=True)

rng = np.random.default_rng(0)
# rows, sums and columns that are whole blocks, depths and panels, and such that leave every kind of rest
SHAPES = [
    (128, 200, 512), (132, 192, 512), (133, 193, 500), (143, 500, 127), (17, 300, 1000), (23, 400, 600),
    (512, 128, 128), (100, 90, 64), (121, 500, 60), (64, 400, 64),
]  # fmt: skip


def functions(fast):
    (signature,) = fast._signatures.values()
    table = signature.paths[0].program.keep.table
    return {name for name, _ in table.rows} | {name for _, name in table.late}


def drawn(m, k, n, dtype, transposed):
    a = rng.normal(size=(m, k)).astype(dtype)
    return a, rng.normal(size=(n, k)).astype(dtype) if transposed else rng.normal(size=(k, n)).astype(dtype)


def agrees(y, a, b):
    wanted = a.astype(np.longdouble) @ b.astype(np.longdouble)
    assert y.dtype == a.dtype
    # each sum of k products is within k units in the last place of what the products would be without signs
    bound = np.finfo(a.dtype).eps * a.shape[-1] * (np.abs(a) @ np.abs(b))
    assert (np.abs(y - wanted) <= bound).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_product_by_panels_is_right_whatever_is_left_over(shape, transposed, dtype):
    a, b = drawn(*shape, dtype, transposed)
    fast = compiled((lambda a, b: a @ b.T) if transposed else (lambda a, b: a @ b), a, b)
    kind = "double" if dtype is np.float64 else "float"
    assert f"mm_panels{'_transposed' * transposed}_{kind}" in functions(fast)
    agrees(fast(a, b), a, b.T if transposed else b)


def test_a_product_between_others_leaves_them_alone():
    a, b = drawn(131, 210, 250, np.float64, False)
    edge = np.full((131, 7), 3.0)
    fast = compiled(lambda a, b, edge: np.concatenate([edge, a @ b, edge], axis=1), a, b, edge)
    y = fast(a, b, edge)
    assert (y[:, :7] == 3.0).all()
    assert (y[:, -7:] == 3.0).all()
    agrees(y[:, 7:-7], a, b)


def test_factors_may_be_slices_of_larger_arrays():
    a, b = rng.normal(size=(140, 300)), rng.normal(size=(320, 260))
    fast = compiled(lambda a, b: a[5:, 10:211] @ b[3:204, 2:250], a, b)
    agrees(fast(a, b), a[5:, 10:211], b[3:204, 2:250])


def test_a_batch_is_multiplied_one_by_one():
    a, b = rng.normal(size=(3, 5, 70, 110)), rng.normal(size=(5, 110, 96))
    agrees(compiled(lambda a, b: a @ b, a, b)(a, b), a, b)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_row_and_column(bad):
    a, b = drawn(133, 250, 100, np.float64, True)
    fast = compiled(lambda a, b: a @ b.T, a, b)
    a[132, 249] = bad  # in the last row, and then in the last column: those that are read again for the rest
    y = fast(a, b)
    assert not np.isfinite(y[132]).any()
    assert np.isfinite(y[:132]).all()
    a[132, 249], b[99, 3] = 1.0, bad
    y = fast(a, b)
    assert not np.isfinite(y[:, 99]).any()
    assert np.isfinite(y[:, :99]).all()
