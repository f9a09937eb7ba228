"""Loops over texts and lists of labels, and reads of their elements by a counter: alignments, scores by pairs."""

import itertools

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 0.33])
FIRST, SECOND = "GATTACAG", "GCATGCTA"


def an_alignment_by_places(x):
    score = np.zeros((9, 9))
    best = 0.0
    for i in range(1, 9):
        for j in range(1, 9):
            s = x[0] if FIRST[i - 1] == SECOND[j - 1] else x[1]
            score[i, j] = max(0.0, score[i - 1, j - 1] + s, score[i - 1, j] - x[2], score[i, j - 1] - x[2])
            best = max(best, score[i, j])
    return best


def an_alignment_of_texts_run_over(x):
    before = np.arange(9) * x[2]
    for i, a in enumerate(FIRST):
        row = np.zeros(9)
        row[0] = (i + 1) * x[2]
        for j, b in enumerate(SECOND):
            row[j + 1] = min(before[j] + (0.0 if a == b else x[0]), before[j + 1] + x[2], row[j] + x[2])
        before = row
    return before[-1]


def scores_of_pairs(x):
    score = {("a", "a"): x[0], ("a", "b"): x[1], ("b", "a"): 0.3, ("b", "b"): x[2]}
    s = 0.0
    for a, b in zip("abbabaabbaab", "aabbaababbaa", strict=True):
        s = 0.9 * s + score[a, b]
    return s


def scores_in_dictionaries(x):
    score = {"a": {"a": x[0], "b": x[1]}, "b": {"a": 0.3 * x[0], "b": x[2]}}
    s = 0.0
    for a, b in zip("abbabaabbaab", "aabbaababbaa", strict=True):
        s = 0.9 * s + score[a][b] * np.sin(s)
    return s + x[0]


def names_by_a_counter(x):
    names, rates = ["up", "down", "up", "still"], {"up": x[0], "down": x[1], "still": 0.0}
    s = x[2]
    for i in range(12):
        s = 0.9 * s + rates[names[i % 4]]
        if names[i // 3] == "up":
            s = s * 0.8
    return s


def records_of_names_and_numbers(x):
    moves = [("left", 0.1), ("right", 0.2), ("left", 0.3)] * 6
    s = x[0]
    for where, by in moves:
        s = s + by * x[1] if where == "left" else s - 0.1 * np.sin(s + by)
    return s


def the_last_letter_behind(x):
    s, last = x[0], "?"
    for a in "abcab":
        s = s * 0.9 + (0.1 if a == last else x[1])
        last = a
    return s * (2.0 if last == "b" else 3.0)


CAPTURED = [
    an_alignment_by_places, an_alignment_of_texts_run_over, scores_of_pairs, scores_in_dictionaries,
    names_by_a_counter, records_of_names_and_numbers, the_last_letter_behind,
]  # fmt: skip


def a_list_that_is_changed(x):
    names = ["up", "down", "up"]
    s = x[0]
    for i in range(9):
        s = 0.9 * s + (x[1] if names[i % 3] == "up" else x[2])
        names[0] = "down"
    return s


def a_list_that_is_changed_by_the_counter(x):
    names = ["up", "down", "up"]
    s = x[0]
    for i in range(9):
        s = 0.9 * s + (x[1] if names[i % 3] == "up" else x[2])
        names[i % 3] = "down" if i % 2 else "up"
    return s


def letters_that_are_joined(x):
    s, word = x[0], ""
    for i in range(9):
        word = word + FIRST[i % 8]
        s = s * 0.9 + x[1]
    return s * word.count("A")


def parts_of_a_text(x):
    s = x[0]
    for i in range(6):
        s = s * 0.9 + (x[1] if FIRST[i : i + 2] == "TA" else x[2])
    return s


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_letters_that_are_compared_are_captured(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert set(what) <= {"captured", "inside"}, text


@pytest.mark.parametrize(
    "f", [a_list_that_is_changed, a_list_that_is_changed_by_the_counter, letters_that_are_joined, parts_of_a_text],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_other_uses_of_texts_are_left_to_python(f):
    agree(f, X, order=1)
    assert "captured" not in report_of(f, X)[0]


def test_a_pair_without_a_score_is_a_key_error():
    def f(x, text):
        score, s = {("a", "b"): x, ("b", "a"): 2 * x}, 0.0
        for a, b in itertools.pairwise(text):
            s = s + score[a, b]
        return s

    with fad.config.use(loops="capture"):
        fast = fad.jit(f, static_argnums=1)
        assert fast(1.0, "ababab") == f(1.0, "ababab")
        for _ in range(2):
            with pytest.raises(KeyError):
                fast(1.0, "abaab")


def test_a_place_behind_a_text_is_an_index_error():
    def f(x):
        for i in range(9):
            x = x * (0.9 if FIRST[i] == "A" else 0.8)
        return x

    with fad.config.use(loops="capture"), pytest.raises(IndexError):
        fad.jit(f)(1.0)
