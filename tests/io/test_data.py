"""Batches cover the data, in an order that is a function of the key; a progress bar is quiet where nobody looks."""

import numpy as np
import pytest

import fad
from fad import data

X, Y = np.arange(10), np.arange(10) ** 2


def test_batches_cover_the_data_in_order():
    found = list(data.batches((X, Y), 4))
    assert [len(x) for x, _ in found] == [4, 4, 2]
    assert np.array_equal(np.concatenate([x for x, _ in found]), X)
    assert len(data.batches((X, Y), 4)) == 3


def test_the_last_batch_can_be_dropped():
    batches = data.batches({"x": X}, 4, drop_last=True)
    assert [len(b["x"]) for b in batches] == [4, 4]
    assert len(batches) == 2


def test_shuffling_keeps_rows_together_and_differs_between_passes():
    batches = data.batches((X, Y), 3, key=0)
    passes = [np.concatenate([x for x, y in batches if np.array_equal(y, x**2)]) for _ in range(2)]
    assert all(sorted(p) == X.tolist() for p in passes)
    assert not np.array_equal(*passes)
    again = np.concatenate([x for x, _ in data.batches((X, Y), 3, key=0)])
    assert np.array_equal(again, passes[0])


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(fad.errors.ShapeMismatchError, match="one length"):
        data.batches((X, Y[:5]), 2)
    with pytest.raises(ValueError, match="at least 1"):
        data.batches(X, 0)


def test_a_progress_bar_is_quiet_when_nobody_looks(capsys):
    bar = data.progress(range(3), "counting")
    total = 0
    for i in bar:
        total += i
        bar.show(total=total)
    assert total == 3
    assert capsys.readouterr() == ("", "")


def test_a_progress_bar_shows_on_a_terminal(capsys, monkeypatch):
    pytest.importorskip("tqdm", reason="the bar is tqdm's")
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    bar = data.progress(range(3), "counting")
    for _ in bar:
        bar.show(loss=0.5)
    shown = capsys.readouterr().err
    assert "counting" in shown
    assert "loss=0.5" in shown
