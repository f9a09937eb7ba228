"""The profiler: what it counts, how it adds up, what it writes, and that it is gone afterwards."""

import json
import threading

import numpy as np
import pytest

import fad
import fad.eager as torch
from fad.core.primitives.primitive import REGISTRY, Primitive
from fad.profiler import profile, record_function

X = np.linspace(0.1, 1.0, 6).reshape(2, 3)
W = np.ones((3, 4))


def loss(x):
    return np.sum(np.tanh(x @ W) ** 2)


def calls(prof, **options):
    return {r.key: r.calls for r in prof.key_averages(**options)}


def test_forward_and_backward_are_counted_apart():
    with profile() as prof:
        for _ in range(3):
            fad.grad(loss)(X)
    assert calls(prof) == {
        f"{name}{way}": 3 for name in ("matmul", "tanh", "square", "sum_over") for way in ("", " (backward)")
    }


def test_profiled_gradients_are_the_same():
    expected = fad.grad(loss)(X), fad.hessian(loss)(X)
    with profile(record_shapes=True, profile_memory=True, with_stack=True):
        found = fad.grad(loss)(X), fad.hessian(loss)(X)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_checkpoint_and_a_loop_of_slices_are_profiled_too():
    def f(x):
        y = fad.checkpoint(lambda x: np.sin(x) * x)(x)
        return sum(y[i] for i in range(3))

    expected = fad.grad(f)(np.arange(3.0))
    with profile() as prof:
        np.testing.assert_array_equal(fad.grad(f)(np.arange(3.0)), expected)
    assert calls(prof)["getitem (backward)"] == 3
    assert calls(prof)["checkpoint (backward)"] == 1


def test_operators_on_numbers_are_profiled():
    with profile() as prof:
        fad.grad(lambda x: -x * x / (x + 2.0))(np.float64(3.0))
    forward = {"negative": 1, "multiply": 1, "add": 1, "divide": 1}
    assert {name: n for name, n in calls(prof).items() if "backward" not in name} == forward


def test_the_eager_api_is_profiled():
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.profiler.profile() as prof:
        torch.exp(x * 2).sum().backward()
    assert calls(prof) == {
        f"{name}{way}": 1 for name in ("multiply", "exp", "sum_over") for way in ("", " (backward)")
    }


def test_self_time_leaves_out_what_ran_inside():
    with profile() as prof, record_function("outer"), record_function("inner"):
        fad.grad(loss)(X)
    rows = {r.key: r for r in prof.key_averages()}
    assert rows["outer"].time_total >= rows["inner"].time_total
    assert rows["outer"].self_time_total == pytest.approx(rows["outer"].time_total - rows["inner"].time_total)
    everything = sum(r.self_time_total for r in rows.values())
    assert everything == pytest.approx(rows["outer"].time_total)


def test_rows_can_be_distinguished_by_shape():
    with profile(record_shapes=True) as prof:
        fad.grad(loss)(X)
        fad.grad(loss)(X[:1])
    rows = prof.key_averages(group_by_input_shape=True)
    assert sorted(r.shapes for r in rows if r.key == "matmul") == [((1, 3), (3, 4)), ((2, 3), (3, 4))]
    assert "[(2, 3), (3, 4)]" in rows.table(row_limit=-1)
    with pytest.raises(ValueError, match="record_shapes=True"):
        profile().key_averages(group_by_input_shape=True)


def test_memory_and_lines_are_noted_on_request():
    with profile(profile_memory=True, with_stack=True) as prof:
        fad.grad(loss)(X)
    (row,) = (r for r in prof.key_averages() if r.key == "tanh")
    assert row.bytes == 2 * 4 * 8
    assert "return np.sum(np.tanh(x @ W) ** 2)" in row.place
    table = prof.key_averages().table(sort_by="bytes")
    assert "Bytes" in table
    assert "np.tanh" in table


def test_the_table_is_sorted_and_cut():
    with profile() as prof:
        for _ in range(5):
            fad.grad(np.sin)(1.0)
        fad.grad(np.cos)(1.0)
    lines = prof.key_averages().table(sort_by="count", row_limit=2).splitlines()
    assert len(lines) == 7
    assert all("sin" in line for line in lines[3:5])
    assert str(prof) == prof.table()
    with pytest.raises(ValueError, match="sort_by"):
        prof.key_averages().table(sort_by="colour")


def test_record_function_decorates_and_does_nothing_without_a_profile():
    @record_function("step")
    def step():
        return 1

    assert step() == 1
    with profile() as prof:
        step()
        step()
    assert calls(prof) == {"step": 2}


def test_nothing_is_left_behind_when_no_profile_is_active():
    before = {name: p.forward for name, p in REGISTRY.items() if isinstance(p, Primitive)}
    with profile():
        assert fad.ops.ufuncs.elementwise.sin.forward is not np.sin
        with pytest.raises(ZeroDivisionError), profile():
            raise ZeroDivisionError
    assert {name: p.forward for name, p in REGISTRY.items() if isinstance(p, Primitive)} == before
    assert fad.ops.ufuncs.elementwise.sin.forward is np.sin


def test_a_profile_that_is_not_enabled_records_nothing():
    with profile(enabled=False) as prof:
        fad.grad(loss)(X)
    assert prof.events == []


def test_other_threads_are_not_recorded():
    with profile() as prof:
        thread = threading.Thread(target=lambda: fad.grad(np.sin)(1.0))
        thread.start()
        thread.join()
    assert prof.events == []


def test_an_error_in_a_profiled_program_passes_through():
    with profile() as prof, pytest.raises(ValueError, match="matmul"):
        fad.grad(lambda x: np.sum(x @ np.ones((5, 5))))(X)
    assert prof.key_averages()


def test_the_trace_is_valid_in_the_trace_event_format(tmp_path):
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof, record_function("block"):
        fad.grad(loss)(X)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    trace = json.loads(path.read_text(encoding="utf-8"))
    assert trace["displayTimeUnit"] in ("ms", "ns")
    complete = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(complete) == len(prof.events)
    for e in trace["traceEvents"]:
        assert {"name", "ph", "pid", "tid"} <= set(e)
        assert e["ph"] in ("X", "M")
        assert all(isinstance(e[key], int) and 0 <= e[key] < 2**32 for key in ("pid", "tid"))
    for e in complete:
        assert isinstance(e["name"], str)
        assert isinstance(e["cat"], str)
        assert e["ts"] >= 0
        assert e["dur"] >= 0
        assert isinstance(e["args"], dict)
    assert [e["ts"] for e in complete] == sorted(e["ts"] for e in complete)
    (block,) = (e for e in complete if e["name"] == "block")
    inner = [e for e in complete if e is not block]
    assert all(block["ts"] <= e["ts"] and e["ts"] + e["dur"] <= block["ts"] + block["dur"] + 1 for e in inner)
