"""What is done to a whole table of which only rows are read is done on the rows."""

import numpy as np
import pytest

import fad
from fad.compile.legalize.places.push_lookups_up import push_lookups_up
from fad.core.programs.rewriter import check_types

rng = np.random.default_rng(0)
TABLE, ROW, COLUMN = rng.normal(size=(600, 30)), rng.normal(size=30), rng.normal(size=(600, 1))
I, J = rng.integers(0, 600, 40), rng.integers(-30, 30, 20)
OPERANDS = (TABLE, ROW, COLUMN, I, J)

MOVED = {
    "a row is added": lambda t, r, c, i, j: (t + r)[i],
    "twice": lambda t, r, c, i, j: ((t + r) * 2.0 - r)[i],
    "read in two places": lambda t, r, c, i, j: (lambda x: x[i] * x[i[::-1]])(t * r),
    "columns": lambda t, r, c, i, j: (t * c)[:, j],
    "some rows of a batch": lambda t, r, c, i, j: (t.reshape(20, 30, 30) - r)[:, j % 30],
}
AS_IT_IS = {
    "the table is read": lambda t, r, c, i, j: (lambda x: (x[i], x))(t + r),
    "each row has its own": lambda t, r, c, i, j: (t * c)[i],
    "rows and columns": lambda t, r, c, i, j: (lambda x: (x[i], x[:, j]))(t + 1.0),
    "two tables": lambda t, r, c, i, j: (t * t[::-1])[i],
    "more is read than there is": lambda t, r, c, i, j: (t + r)[np.tile(i, 100)],
    "it takes long": lambda t, r, c, i, j: np.sin(t)[i],
    "single elements": lambda t, r, c, i, j: (t + r)[i, i % 30],
    "an array of indices": lambda t, r, c, i, j: (t + r)[i.reshape(4, 10)],
    "where a mask says so": lambda t, r, c, i, j: np.where(t > 0, t, r)[i],
}


def largest_result(graph):
    done = [eq for eq in graph.equations if eq.prim.archetype == "elementwise"]
    return max(graph.types[o].size for eq in done for o in eq.outs)


@pytest.mark.parametrize("name", [*MOVED, *AS_IT_IS])
def test_a_program_with_lookups_computes_the_same(name):
    f = {**MOVED, **AS_IT_IS}[name]
    graph = fad.make_graph(f)(*OPERANDS)
    found = push_lookups_up(graph)
    check_types(found)
    for a, b in zip(found(*OPERANDS), graph(*OPERANDS), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)
    run = fad.jit(f)
    for _ in range(2):
        for a, b in zip(fad.tree.leaves(run(*OPERANDS)), fad.tree.leaves(f(*OPERANDS)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("name", MOVED)
def test_no_whole_table_is_computed(name):
    assert largest_result(push_lookups_up(fad.make_graph(MOVED[name])(*OPERANDS))) < TABLE.size


@pytest.mark.parametrize("name", AS_IT_IS)
def test_what_more_than_rows_need_stays_where_it_is(name):
    graph = fad.make_graph(AS_IT_IS[name])(*OPERANDS)
    assert push_lookups_up(graph) is graph


def test_an_index_out_of_range_is_an_error_as_without_jit():
    def f(table, i):
        return (table + 1.0)[i] * 2.0

    run = fad.jit(f)
    run(TABLE, I), run(TABLE, I)
    with pytest.raises(IndexError, match="index 600 is out of bounds for axis 0 with size 600"):
        run(TABLE, np.full_like(I, 600))
