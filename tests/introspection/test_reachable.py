"""What a function finds by name: what its code may read, and not all that its module holds."""

import numpy as np
import pytest
import scipy.sparse

import fad
from fad.core.runs import outside, overlay_needs
from fad.introspect.reachable import Walk, reach


class Session:
    """Stands for a notebook's shell, or a test runner's session: a variable of a module that leads everywhere."""

    def __init__(self):
        self.kept = [np.zeros(3) for _ in range(20)]

    def __call__(self):
        return self.kept


def module_with(text):
    """Return the variables of a module whose loader and whose variable `session` hold arrays, as a program of text."""
    names = {"__name__": "program", "np": np, "session": Session(), "__loader__": Session()}
    exec(compile(text, "<program>", "exec"), names)
    return names


def arrays_in(found):
    return [x for x in found if type(x) is np.ndarray]


def test_a_function_that_may_read_any_variable_does_not_reach_the_loader_of_its_module():
    names = module_with("def f(x):\n    return globals()[x]().kept")
    assert len(arrays_in(reach(names["f"]))) == 20  # the session's
    del names["session"]
    assert not arrays_in(reach(names["f"]))


FAILING = """
table = np.ones(2)

def fails(x):
    out = np.zeros(3)
    def put():
        out[:] = x * table
    put()
"""


def test_what_a_function_in_which_an_error_arose_could_write_into_is_what_it_names_and_holds():
    names = module_with(FAILING)
    names["history"] = [np.zeros(4) for _ in range(20)]  # as a notebook keeps them
    with pytest.raises(ValueError, match="broadcast") as caught:
        names["fails"](2.0)
    error = caught.value.with_traceback(caught.value.__traceback__.tb_next)  # without this function, which holds all
    found = arrays_in(Walk(overlay_needs.find_reach(error), outside.MANY))
    assert sorted(len(x) for x in found) == [2, 3]


def test_where_c_code_keeps_what_calls_an_object_is_no_place_that_a_program_reads():
    names = module_with("def f(x):\n    return compiled(x)")
    names["compiled"] = np.random.default_rng  # of Cython's class of functions
    walk = Walk([names["f"]])
    assert names["compiled"] in list(walk)
    assert not [place for place in walk.places if type(place.value) is int]


def test_a_function_that_reads_any_attribute_reads_nothing_that_a_library_keeps_for_itself():
    jacobian = fad.sparse.jacobian(lambda x, name="T": getattr(x, name) * x)
    jacobian(np.ones(3))  # from then on it keeps the places of the matrix
    assert not any(map(scipy.sparse.issparse, Walk([jacobian])))
