"""The page of benchmarks, which three scripts write: each puts its own section there and leaves the others."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def gradbench(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("gradbench")


def test_a_section_is_put_before_that_of_npbench_and_replaced_the_next_time(gradbench):
    page = "# Benchmarks\n\ntables\n\n## NPBench\n\nits programs\n"
    once = gradbench.insert(page, "## GradBench\n\nold\n")
    assert once == "# Benchmarks\n\ntables\n\n## GradBench\n\nold\n\n## NPBench\n\nits programs\n"
    assert gradbench.insert(once, "## GradBench\n\nnew\n") == once.replace("old", "new")


def test_the_sections_on_sizes_and_on_tools_leave_each_other(gradbench):
    page = "# Benchmarks\n\n## GradBench\n\ntools\n\n## NPBench\n\nits programs\n"
    both = gradbench.insert(page, f"{gradbench.GROWTH}\n\nfigures\n")
    assert both == page.replace("tools\n", f"tools\n\n{gradbench.GROWTH}\n\nfigures\n")
    assert gradbench.insert(both, "## GradBench\n\nnew\n") == both.replace("tools", "new")
    assert gradbench.insert(both, f"{gradbench.GROWTH}\n\nnew\n") == both.replace("figures", "new")


def test_the_growth_of_cost_is_the_time_for_each_piece_of_work(gradbench):
    row = gradbench.Row("lse", "n=1000")
    row.add("fad", {"output": [1.0], "timings": [{"nanoseconds": 1e6 * t} for t in (500, 1500, 2, 4)]})
    assert "| lse, n=1000 | 2 | 2e+03 | 2.00 |" in gradbench.grown([(row, 1000)])


def test_a_section_comes_last_where_there_is_no_other(gradbench):
    assert gradbench.insert("# Benchmarks\n", "## GradBench\n\nrows\n") == "# Benchmarks\n\n## GradBench\n\nrows\n"


def test_results_are_compared_number_by_number_whatever_holds_them(gradbench):
    reference = {"b": [[1.0, 2.0], [3.0, -4.0]], "a": 0.5}
    assert gradbench.difference({"a": 0.5, "b": [[1.0, 2.0], [3.0, -4.0]]}, reference) == 0
    assert gradbench.difference({"a": 0.5, "b": [[1.0, 2.0], [3.0, -3.0]]}, reference) == 0.25
    assert gradbench.difference([0.5, 1.0], reference) == float("inf")
    assert gradbench.difference({"a": float("nan"), "b": reference["b"]}, reference) != 0


def test_a_row_says_which_tool_is_apart_and_which_was_stopped(gradbench):
    row = gradbench.Row("lse", "n=2")
    answer = lambda out, *ms: {"output": out, "timings": [{"nanoseconds": 1e6 * t} for t in ms]}
    row.add("fad", answer([1.0], 500, 1500, 2, 4))
    row.add("manual", answer([1.0], 8, 4))
    row.add("jax", answer([1.1], 5))
    row.why["pytorch"] = "> 8 s"
    assert gradbench.shown(row) == (
        "| lse, n=2 | 2 | 4 | – | – | – | 5 | > 8 s | 0.50 | 2.00 | 0e+00; JAX differs by 1e-01 |"
    )


def test_a_closed_form_is_shown_and_not_compared_with(gradbench):
    row = gradbench.Row("ode", "n=2")
    for tool, seconds in (("fad", 2.0), ("manual", 0.1), ("codipack", 8.0)):
        row.best[tool] = seconds
    assert row.ratio == 0.25
    assert gradbench.cell(row, "manual") == "100"


def test_what_was_stopped_is_no_time_in_the_picture(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(BENCHMARKS)
    time_in = importlib.import_module("gradbench_picture").time_in
    assert [time_in(cell) for cell in ("1.24e+03", "0.0356", "> 8 s", "fails", "–")] == [1240, 0.0356, None, None, None]
