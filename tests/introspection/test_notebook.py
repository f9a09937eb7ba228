"""What a notebook shows of programs, profiles and memory: true, escaped, and without styles for the page around it."""

import re

import numpy as np
import pytest

import fad
from fad.viz import tables, timelines


def loss(w, x):
    h = np.tanh(x @ w)
    return np.sum((h[1:] - h[:-1]) ** 2)


W, X = np.ones((3, 4)) / 7, np.ones((5, 3))


def test_live_bytes_of_a_chain_are_an_operands_and_a_results():
    graph = fad.make_graph(lambda x: np.exp(np.sin(np.cos(x))))(np.ones(100))
    assert graph.live_bytes() == [1600, 2400, 2400]  # the input stays; each result lives until the next is computed


def test_live_bytes_count_what_a_later_operation_reads():
    def f(x):
        early = np.sin(x)
        late = np.cos(np.exp(np.tanh(x)))
        return early + late

    graph = fad.make_graph(f)(np.ones(100))
    assert [eq.prim.name for eq in graph.equations] == ["sin", "tanh", "exp", "cos", "add"]
    assert graph.live_bytes() == [1600, 2400, 3200, 3200, 3200]


def test_live_bytes_count_a_view_with_its_operand():
    def f(x):
        y = np.sin(x)
        return np.cos(y.reshape(10, 10)[:5].T)

    graph = fad.make_graph(f)(np.ones(100))
    assert [eq.prim.name for eq in graph.equations] == ["sin", "reshape_to", "getitem", "permute", "cos"]
    assert graph.live_bytes() == [1600, 1600, 1600, 1600, 2000]


def test_live_bytes_count_elements_taken_by_an_array_as_an_array_of_their_own():
    graph = fad.make_graph(lambda x: np.sin(x[np.array([1, 2])]))(np.ones(100))
    held = 800 + sum(c.nbytes for c in graph.constants.values())
    assert graph.live_bytes() == [held + 16, held + 32]


def test_the_page_of_a_graph_has_a_step_for_the_memory_of_each_operation_and_names_the_peak():
    graph = fad.make_graph(fad.grad(loss))(W, X)
    page = graph.to_html()
    assert page.count('fill="transparent"') == len(graph)
    peak = int(np.argmax(graph.live_bytes()))
    shown = re.search(r'fill="currentColor">(.*?)</text>', page)[1]
    assert graph.equations[peak].prim.name in shown
    assert "test_notebook.py" in shown


def test_a_graph_without_operations_has_no_chart_of_memory():
    assert "Bytes held" not in fad.make_graph(lambda x: x)(np.ones(3)).to_html()


def test_a_profile_is_a_chart_of_its_calls_and_their_table():
    with fad.profiler.profile(with_stack=True) as prof, fad.profiler.record_function("<step>"):
        fad.grad(loss)(W, X)
    shown = prof._repr_html_()
    assert shown.count("<rect") <= len(prof.events)
    assert shown.count("<tr>") == len(prof.key_averages()) + 1
    assert "&lt;step&gt;" in shown
    assert "<step>" not in shown
    assert "test_notebook.py" in shown
    assert "<style" not in shown


def test_calls_inside_a_block_are_drawn_below_it():
    with fad.profiler.profile() as prof, fad.profiler.record_function("outer"):
        with fad.profiler.record_function("inner"):
            fad.grad(loss)(W, X)
    spans = fad.profiler._spans(prof.events)
    depth = {s.name: s.depth for s in spans}
    assert (depth["outer"], depth["inner"], depth["matmul"]) == (0, 1, 2)


def test_a_profile_of_nothing_says_so():
    with fad.profiler.profile() as prof:
        pass
    assert "Nothing was recorded" in prof._repr_html_()


def test_what_reverse_mode_keeps_is_a_table_with_its_sum():
    found = fad.saved(loss)(W, X)
    shown = found._repr_html_()
    assert shown.count("<tr>") == len(found) + 1
    assert f"{found.total:,} bytes in {len(found)} arrays" in shown


def test_a_jitted_function_shows_each_path_with_its_guards_and_recording():
    @fad.jit
    def f(x):
        if x.sum() > 0:
            return np.tanh(x) * 2
        return np.sin(x)

    assert "Nothing is recorded yet" in f._repr_html_()
    f(np.ones(3))
    assert "not compiled yet" in f._repr_html_()
    f(np.ones(3))
    f(-np.ones(3))
    shown = f._repr_html_()
    assert shown.count("Program for (f64[3])") == 2
    assert shown.count("guard: the answer was True at ") == 1
    assert shown.count("<iframe") == 2


def test_a_compiled_function_shows_which_operations_share_a_loop():
    pytest.importorskip("llvmlite", reason="native programs are made with llvmlite")
    f = fad.jit(lambda x: np.sum(np.tanh(x) * 2 + 1))
    for _ in range(2):
        f(np.ones(3))
    assert re.search(r">sum</td>.*?>tanh multiply add sum_over</td>", f._repr_html_())


def test_a_table_is_as_wide_as_its_head_and_escapes_its_cells():
    shown = tables.table(("name", "n"), [("<a>", "1"), ("b", "2")], ("name",), (0.25, 7.0))
    assert shown.count("<td") == 4
    assert "&lt;a&gt;" in shown
    assert "25.0%" in shown
    assert "100.0%" in shown


def test_a_chart_of_equal_sizes_is_as_high_throughout():
    shown = timelines.memory([8, 8], ["a", "b"])
    assert shown.count('height="150.0" fill="#f97316"') == 2


@pytest.mark.parametrize("folder", ["", "/home/me/", "/a folder/deep/", "C:\\work\\", "../"])
def test_a_line_is_shown_without_the_folders_of_its_file(folder):
    assert tables.without_folder(f"{folder}train.py:12: y = a / b[1:2]") == "train.py:12: y = a / b[1:2]"


def test_what_a_notebook_shows_names_lines_without_folders():
    with fad.profiler.profile(with_stack=True) as prof:
        fad.grad(loss)(W, X)
    for shown in (prof._repr_html_(), fad.saved(loss)(W, X)._repr_html_()):
        assert "test_notebook.py:" in shown
        assert "introspection/test_notebook.py" not in shown
