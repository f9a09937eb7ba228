"""Methods of traced arrays take their arguments by the names that those of NumPy's arrays have."""

import numpy as np
import pytest

import fad

X = np.arange(6.0).reshape(2, 3) + 0.5

CALLS = [
    ("astype", {"dtype": "float32", "copy": False}),
    ("astype", {"dtype": float, "order": "F", "casting": "same_kind"}),
    ("sum", {"axis": 1, "dtype": float, "initial": 1.0, "keepdims": True}),
    ("prod", {"axis": 0, "where": X > 1}),
    ("max", {"axis": 0, "initial": 3.0}),
    ("min", {"axis": 1, "keepdims": True}),
    ("argmax", {"axis": 1, "keepdims": True}),
    ("mean", {"axis": 0, "dtype": float}),
    ("var", {"axis": 0, "ddof": 1}),
    ("std", {"axis": 1, "ddof": 1, "keepdims": True}),
    ("argsort", {"axis": 0, "kind": "stable"}),
    ("argpartition", {"kth": 1, "axis": 0}),
    ("ravel", {"order": "F"}),
    ("flatten", {"order": "F"}),
    ("squeeze", {"axis": None}),
    ("diagonal", {"offset": 1, "axis1": 0, "axis2": 1}),
    ("trace", {"offset": 1, "axis1": 0, "axis2": 1}),
    ("clip", {"min": 1.0, "max": 3.0}),
    ("round", {"decimals": 0}),
    ("take", {"indices": [0, 1], "axis": 1, "mode": "clip"}),
    ("compress", {"condition": [True, False], "axis": 0}),
    ("cumsum", {"axis": 1, "dtype": float}),
    ("cumprod", {"axis": 1}),
    ("repeat", {"repeats": 2, "axis": 0}),
    ("dot", {"b": np.ones(3)}),
    ("copy", {"order": "F"}),
    ("searchsorted", {"v": 1.0, "side": "right"}),
]
CHANGES = [
    ("sort", {"axis": 0, "kind": "stable"}),
    ("partition", {"kth": 1, "axis": 0}),
    ("put", {"indices": [0, 7], "values": [9.0, 8.0], "mode": "wrap"}),
]


@pytest.mark.parametrize(("name", "named"), CALLS)
def test_a_method_takes_its_arguments_by_name(name, named):
    x = X[0] if name == "searchsorted" else X
    call = lambda x: getattr(x, name)(**named)
    wanted = call(x)
    for got in (fad.jvp(call, (x,), (x,))[0], fad.vjp(call, x)[0], fad.jit(call)(x)):
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype


@pytest.mark.parametrize(("name", "named"), CHANGES)
def test_a_method_that_changes_the_array_takes_its_arguments_by_name(name, named):
    def call(x):
        y = -x
        getattr(y, name)(**named)
        return y

    for got in (fad.jvp(call, (X,), (X,))[0], fad.vjp(call, X)[0], fad.jit(call)(X)):
        np.testing.assert_array_equal(got, call(X))
