"""Graphs as drawings: every box once, none over another, with bytes and lines, on a page that needs no network."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fad
import fad.eager as torch
from fad import nn
from fad.nn import functional as F
from fad.viz.layout import FAR, layers_of, layout


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 25))
    above = [draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else [] for i in range(n)]
    sizes = [(draw(st.floats(10, 200)), draw(st.floats(10, 50))) for _ in range(n)]
    return sizes, above


@given(graphs())
def test_boxes_do_not_overlap_and_stand_below_their_operands(graph):
    sizes, above = graph
    found = layout(sizes, above)
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(found.corners, sizes, strict=True)]
    for i, (a, b, c, d) in enumerate(boxes):
        assert a >= -1e-9
        assert c <= found.size[0] + 1e-9
        assert d <= found.size[1] + 1e-9
        for p in above[i]:
            assert boxes[p][3] < b
        for e, f, g, h in boxes[:i]:
            assert c <= e + 1e-9 or g <= a + 1e-9 or d <= f or h <= b


@given(graphs())
def test_every_operand_is_joined_by_lines_or_named_as_far(graph):
    sizes, above = graph
    found = layout(sizes, above)
    point = lambda x, y: (round(x, 6), round(y, 6))
    after = {}
    for a, b, _ in found.lines:
        after.setdefault(point(*a), []).append(point(*b))
    middles = [(x + w / 2, y, y + h) for (x, y), (w, h) in zip(found.corners, sizes, strict=True)]
    top = {point(x, y): i for i, (x, y, _) in enumerate(middles)}
    reached = set(found.far)
    for i, (x, _, bottom) in enumerate(middles):
        waiting = list(after.get(point(x, bottom), []))
        while waiting:
            at = waiting.pop()
            if at in top:
                reached.add((i, top[at]))
            else:
                waiting += after[at]
    assert reached == {(p, i) for i, ps in enumerate(above) for p in ps}


def test_what_is_used_much_later_is_drawn_where_it_is_used():
    chain = [[], [0], *[[i] for i in range(1, 21)], [21, 1]]
    assert layers_of(chain)[:3] == [0, 1, 2]
    late = [[], [0], [0], *[[i] for i in range(2, 22)], [22, 1]]
    assert layers_of(late)[1] == layers_of(late)[-1] - 1 > FAR


def loss(w, x):
    h = np.tanh(x @ w)
    if h.sum() > -100.0:
        h = h * 2.0
    return np.mean(h**2)


def test_a_page_shows_operations_shapes_bytes_and_the_users_lines():
    graph = fad.make_graph(loss)(np.ones((3, 4)), np.ones((5, 3)))
    page = graph.to_html()
    assert page.count('<a href="#row') == page.count("<tr id=") == len(graph) + 2 + 1  # the inputs and the output
    assert "tanh c" in page
    assert "f64[5,4] (160 B)" in page
    assert "guard bool" in page
    assert re.search(r"test_drawing\.py:\d+: h = np\.tanh\(x @ w\)", page)
    assert re.search(r"test_drawing\.py:\d+</text>", page)
    dot = graph.to_dot()
    assert "f64[5,4] (160 B)" in dot
    assert re.search(r"test_drawing\.py:\d+", dot)


def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    shown = fad.make_graph(np.sin)(np.ones(3))._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert "<style>" not in shown


def test_text_in_a_page_is_escaped():
    y = (torch.ones(3, requires_grad=True) * 2).sum()  # <script>alert("x")</script>
    page = torch.autograd.graph.to_html(y)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_a_graph_of_the_eager_api_shows_what_each_node_keeps():
    layer = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    y = layer(torch.ones(2, 3)).sum()
    page = torch.autograd.graph.to_html(y)
    assert "leaf (4, 3) float32 (48 B)" in page
    assert "keeps (2, 4) (32 B)" in page
    assert page.count("y = layer(torch.ones(2, 3)).sum()") >= 3
    assert "fad/eager" not in page


def test_the_graph_of_a_model_with_statistics_has_them_as_inputs_and_leaves_the_model_alone():
    model = nn.Sequential(nn.Linear(3, 4, key=0), nn.BatchNorm1d(4))
    x, labels = np.random.default_rng(0).standard_normal((5, 3)), np.arange(5) % 4
    before = model.state_dict()
    f = lambda m, x: F.cross_entropy(m(x), labels)
    graph = fad.make_graph(fad.grad(f))(model, x)
    assert all(np.array_equal(before[k], v) for k, v in model.state_dict().items())
    expected = fad.tree.leaves(fad.grad(f)(model, x))  # which updates the statistics
    *weights, scale, shift = fad.tree.leaves(model)
    statistics = [before[f"1.{name}"] for name in ("running_mean", "running_var", "num_batches_tracked")]
    found = graph(*weights, scale, shift, *statistics, x)
    for a, b in zip(found, expected, strict=False):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    for a, name in zip(found[-3:], ("running_mean", "running_var", "num_batches_tracked"), strict=True):
        np.testing.assert_allclose(a, getattr(model[1], name))


def test_a_model_with_statistics_that_is_no_argument_is_refused_by_make_graph():
    model = nn.BatchNorm1d(4)
    with pytest.raises(fad.errors.ImpureFunctionError, match="as an argument"):
        fad.make_graph(lambda x: model(x))(np.ones((5, 4)))
    assert model(np.ones((5, 4))).shape == (5, 4)
