"""The contract: every registered operation, on its own samples, against every clause (see fad.testing).

Set CONTRACT_SEED to draw other numbers.
"""

import copy
import dataclasses
import os
import warnings

import all_of_fad
import numpy as np
import pytest

import fad
from fad.core.primitives.cotangent import densify
from fad.core.primitives.primitive import REGISTRY, Composite, Primitive
from fad.errors import GradientCheckError
from fad.testing import call, contract
from fad.testing.cases import cases
from fad.testing.suite import breaches

FAILED = all_of_fad.load()
SEED = int(os.environ.get("CONTRACT_SEED", "0"))


def test_every_module_can_be_imported():
    assert not FAILED


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_operation_passes_every_clause_of_the_contract(name):
    contract(name, seed=SEED)


def _square(**rules):
    """Return x*x as a primitive with right rules, but for those given."""
    right = dict(
        forward=lambda x: x * x,
        jvp=lambda tangents, y, xs, params: 2.0 * xs[0] * tangents[0],
        vjp=(lambda ct, y, x: 2.0 * x * ct,),
        batch=lambda size, batched, xs, params: xs[0] * xs[0],
        samples=lambda s: [call(s.real(3, 4)), call(s.real())],
    )
    return Primitive("my_square", **{**right, **rules})


def _mutating(x):
    x *= x
    return x


def _bad_single(tangents, y, xs, params):
    return np.float64(2.0) * xs[0] * tangents[0]


WRONG = {
    "a jvp with a wrong factor": (_square(jvp=lambda t, y, xs, params: 3.0 * xs[0] * t[0]), "jvp_is_numerical"),
    "a vjp with a wrong factor": (_square(vjp=(lambda ct, y, x: x * ct,)), "vjp_is_the_transpose"),
    "a vjp of a wrong shape": (_square(vjp=(lambda ct, y, x: np.sum(2.0 * x * ct),)), "vjp_is_the_transpose"),
    "a jvp that is no function of the traced operand": (
        _square(jvp=lambda t, y, xs, params: 2.0 * getattr(xs[0], "wrapped", xs[0]) * t[0]),
        "second_derivatives",
    ),
    "a vjp that differs from the jvp only where it conjugates": (
        _square(vjp=(lambda ct, y, x: 2.0 * np.conjugate(x) * ct,)),
        "vjp_is_the_transpose",
    ),
    "a batching rule that forgets the batch elements": (
        _square(batch=lambda size, batched, xs, params: xs[0][::-1] * xs[0]),
        "vmap_is_a_loop",
    ),
    "a forward function that writes into its operand": (_square(forward=_mutating), "nothing_is_mutated"),
    "a vjp that gives its operand away": (
        Primitive(
            "gift", lambda x: x + 0.0, vjp=(lambda ct, y, x: ct,), jvp=lambda t, y, xs, p: t[0] * xs[0] / xs[0],
            batch=lambda size, batched, xs, params: xs[0] * 1.0 * 2.0, samples=lambda s: [call(s.positive(3))],
        ),
        "vmap_is_a_loop",
    ),
    "a jvp that makes single precision double": (_square(jvp=_bad_single), "single_precision_stays_single"),
    "a batching rule that makes single precision double": (
        _square(batch=lambda size, batched, xs, params: (xs[0] * xs[0]).astype(np.result_type(xs[0], float))),
        "vmap_stays_single",
    ),
    "a double result that was rounded to single precision on the way": (
        Composite(
            "rounded", lambda x: (x * x).astype(float), samples=lambda s: [call(s.real(3))],
            numpy=(lambda x: x.astype(float) ** 2,),
        ),
        "single_precision_stays_single",
    ),
    "an operation called flat that is not": (
        Composite("not_flat", lambda x: x * x, samples=lambda s: [call(s.real(3))], flat=True),
        "flat_operations_are_constant",
    ),
    "a value that is not NumPy's": (
        Composite("half_sine", lambda x: 0.5 * np.sin(x), samples=lambda s: [call(s.real(3))], numpy=(np.sin,)),
        "value_is_numpys",
    ),
    "a scalar where NumPy gives one of another kind": (
        Composite(
            "boxed", lambda x: np.add.reduce(x, keepdims=True), samples=lambda s: [call(s.real(3))], numpy=(np.sum,)
        ),
        "value_is_numpys",
    ),
    "keywords that are ignored": (
        Composite("careless", lambda x, **_: np.sin(x), samples=lambda s: [call(s.real(3))], numpy=(np.sin,)),
        "unknown_keywords_are_refused",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(WRONG))
def test_a_wrong_rule_breaks_the_contract(what):
    operation, clause = WRONG[what]
    with pytest.raises(GradientCheckError, match=clause) as caught:
        contract(operation)
    assert operation.name in str(caught.value)


def _scaled(rule, tried):
    """Return a rule whose result is one percent too large, noting whether it gave any."""

    def wrong(*args, **kwargs):
        found = rule(*args, **kwargs)
        if found is None:
            return None
        tried.append(True)
        return 1.01 * densify(found)

    return wrong


def _corruptions(prim):
    """Return copies of a primitive, each with one of its reverse rules (or its only forward rule) wrong."""
    if callable(prim.vjp) or prim.vjp_of_all is not None:
        slots = [0, 1]  # one rule for operands of one kind
    else:
        slots = [k for k, rule in enumerate(prim.vjp or ()) if rule is not None] or ["jvp"]
    for k in slots:
        wrong, tried = copy.copy(prim), []
        if callable(prim.vjp):
            rule = _scaled(prim.vjp, tried)
            wrong.vjp = lambda i, *args, k=k, rule=rule, **params: (rule if i == k else prim.vjp)(i, *args, **params)
        elif prim.vjp_of_all is not None:
            rule = _scaled(lambda *args, k=k, **params: prim.vjp_of_all(*args, **params)[k], tried)
            wrong.vjp_of_all = lambda *args, k=k, rule=rule, **params: [
                rule(*args, **params) if i == k else ct for i, ct in enumerate(prim.vjp_of_all(*args, **params))
            ]
        elif k == "jvp":
            wrong.jvp = _scaled(prim.jvp, tried)
        else:
            wrong.vjp = tuple(_scaled(f, tried) if i == k else f for i, f in enumerate(prim.vjp))
        if prim.partials is not None:
            wrong.partials = tuple(_scaled(f, tried) if i == k else f for i, f in enumerate(prim.partials))
        yield k, wrong, tried


def _has_no_rule(prim, k):
    """Return whether operand k takes integers alone, or the operation says that it has no derivative there."""
    operands = [np.asarray(x, float) if i == k else x for i, x in enumerate(cases(prim)[0].sample.args)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy deprecates orders that are no integers
        try:
            y, pullback = fad.vjp(lambda x: prim(*operands[:k], x, *operands[k + 1 :]), operands[k])
            pullback(np.ones_like(y))
        except (fad.errors.FadError, TypeError):
            return True
    return False


RULED = [
    name
    for name, op in sorted(REGISTRY.items())
    if isinstance(op, Primitive) and not op.flat and not op.multi and op.numerical
]


@pytest.mark.parametrize("name", RULED)
def test_a_rule_that_is_one_percent_wrong_is_caught_by_the_samples_of_its_operation(name):
    for k, wrong, tried in _corruptions(REGISTRY[name]):
        if next(breaches(wrong, ["first"]), None):
            continue
        if callable(wrong.vjp) or wrong.vjp_of_all is not None:
            assert not tried, f"the samples of {name} do not see a wrong rule of operand {k}"
        else:
            assert _has_no_rule(REGISTRY[name], k), f"the samples of {name} do not see a wrong rule of operand {k}"


def test_digits_beyond_single_precision_may_differ_where_the_module_says_that_the_reference_rounds():
    operation, _ = WRONG["a double result that was rounded to single precision on the way"]
    contract(dataclasses.replace(operation, rounding="single"))


def test_right_rules_pass_the_contract():
    contract(_square())


def test_an_operation_without_samples_fails_by_name():
    with pytest.raises(GradientCheckError, match="my_square has no samples"):
        contract(_square(samples=None))
    with pytest.raises(GradientCheckError, match="my_square has an empty list of samples"):
        contract(_square(samples=lambda s: []))


def test_a_plain_function_can_be_held_to_the_contract():
    contract(lambda x, y: np.sin(x) * y, samples=lambda s: [call(s.real(3, 1), s.real(4)), call(s.real(), 2.0)])


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("remainder", 3), ("histogramdd", 1), ("special.huber", 3), ("scipy.ndimage.map_coordinates", 3),
        ("scipy.spatial.distance.braycurtis", 1), ("fmod.outer", 8), ("scipy.linalg.norm", 9), ("cond", 10),
        ("eig", 12), ("power.accumulate", 12), ("scipy.interpolate.CubicSpline.periodic", 6),
    ],
)  # fmt: skip
def test_samples_that_another_seed_puts_close_to_a_kink_are_drawn_again(name, seed):
    if name not in REGISTRY:
        pytest.skip("SciPy is not installed")
    contract(name, groups=["first", "second"], seed=seed)


def test_an_operation_whose_samples_all_lie_on_a_kink_is_refused():
    ramp = _square(kinks=lambda x: (0.0 * x,))
    with pytest.raises(GradientCheckError, match="close to a kink on every draw"):
        contract(ramp)


def test_unknown_names_and_groups_are_refused():
    with pytest.raises(KeyError, match="no_such"):
        contract("no_such_operation")
    with pytest.raises(ValueError, match="no such groups"):
        contract("sin", groups=["no such"])
