"""Whatever bytes a file has, `load` gives a tree of arrays or FileFormatError, and takes little memory."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fad
from fad import files
from fad.errors import FadError
from fad.files import FileFormatError

F64 = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
TREE = {
    "w": np.arange(6.0).reshape(2, 3),
    "z": [np.array([1 + 2j, 3j]), (np.array([True, False]), None, "text", float("nan"))],
    "s": np.float32(0.5),
    "e": np.zeros((0, 4), np.int8),
    "n": 3,
}


def contents(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def load(path, content):
    path.write_bytes(content)
    return fad.load(path)


def entry(data=bytes(8), **changed):
    return contents({"a": {**F64, **changed}}, data)


def described(tree, complexes="[]"):
    return contents({"__metadata__": {"fad": tree, "complex": complexes}, "a": F64}, bytes(8))


MALFORMED = {
    "a header that is longer than the file": (1000).to_bytes(8, "little") + b"{}",
    "a header that is longer than any": (2**63).to_bytes(8, "little") + b"{}",
    "a header of deep lists": contents(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "a header of deep dictionaries": contents(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "a header in UTF-16": contents("{}".encode("utf-16-le")),
    "a header that is not text": contents(b'{"\xff": 1}'),
    "a number of 5000 digits": contents(b'{"a":' + b"1" * 5000 + b"}"),
    "two entries of one name": contents(b'{"a":%b,"a":%b}' % ((json.dumps(F64).encode(),) * 2), bytes(8)),
    "two metadata": contents(b'{"__metadata__":{"a":"1"},"__metadata__":{"b":"2"}}'),
    "metadata that is a list": contents({"__metadata__": ["fad"]}),
    "metadata of numbers": contents({"__metadata__": {"fad": 1}}),
    "an entry that is a list": contents({"a": [1, 2]}),
    "an entry with more than is known": entry(scale=2),
    "an unknown dtype": entry(dtype="F99"),
    "a dtype that NumPy has not": entry(dtype="BF16", shape=[4]),
    "a dtype that is a list": entry(dtype=["F64"]),
    "a shape that is a number": entry(shape=1),
    "a shape that is a string": entry(shape="1"),
    "NaN in a shape": entry(shape=[float("nan")]),
    "infinity in a shape": entry(shape=[float("inf")]),
    "a real number in a shape": entry(shape=[1.0]),
    "a boolean in a shape": entry(shape=[True]),
    "a negative shape": entry(shape=[-1, -1]),
    "65 axes": entry(shape=[1] * 65),
    "a million axes": entry(shape=[2**62] * 1_000_000),
    "2**63 in an empty shape": entry(b"", shape=[0, 2**63], data_offsets=[0, 0]),
    "2**62 in an empty shape": entry(b"", shape=[0, 2**62], data_offsets=[0, 0]),
    "a size of 2**64": entry(shape=[2**61], data_offsets=[0, 2**64]),
    "negative offsets": entry(data_offsets=[-8, 0]),
    "offsets the wrong way round": entry(data_offsets=[8, 0]),
    "three offsets": entry(data_offsets=[0, 8, 16]),
    "offsets that are strings": entry(data_offsets=["0", "8"]),
    "a range that is too short": entry(shape=[2]),
    "a range beyond the end": entry(data_offsets=[8, 16]),
    "a hole before the first array": entry(bytes(16), data_offsets=[8, 16]),
    "a hole between arrays": contents({"a": F64, "b": {**F64, "data_offsets": [16, 24]}}, bytes(24)),
    "overlapping arrays": contents({"a": {**F64, "shape": [2], "data_offsets": [0, 16]}, "b": F64}, bytes(16)),
    "one range for two arrays": contents({"a": F64, "b": F64}, bytes(8)),
    "bytes after the last array": entry(bytes(9)),
    "a boolean of 7": entry(b"\x07", dtype="BOOL", data_offsets=[0, 1]),
    "a tree of deep lists": described('{"list":[' * 100_000),
    "a tree that is a number": described("1"),
    "a tree of an unknown kind": described('{"set": []}'),
    "a tree that is empty": described("{}"),
    "a tree whose list is a string": described('{"list": "ab"}'),
    "a tree whose value is a list": described('{"dict": {"v": {"value": [1]}, "a": {"array": "a"}}}'),
    "a tree without one of the arrays": described('{"value": 1}'),
    "a tree with an array twice": described('{"list": [{"array": "a"}, {"array": "a"}]}'),
    "a tree with a key twice": described('{"dict": {"a": {"array": "a"}, "a": {"value": 1}}}'),
    "a tree of an array that is not there": described('{"array": "b"}'),
    "a tree of an array named by a list": described('{"array": ["a"]}'),
    "an array that is said to be a scalar": described('{"array": "a", "scalar": true}'),
    "complex numbers without pairs": described('{"array": "a"}', '["a"]'),
    "complex names in a string": described('{"array": "a"}', '"a"'),
    "complex names that are not there": described('{"array": "a"}', '["b"]'),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_file_is_a_format_error(tmp_path, kind):
    with pytest.raises(FileFormatError) as caught:
        load(tmp_path / "x", MALFORMED[kind])
    assert isinstance(caught.value, FadError)
    assert len(str(caught.value)) < 1000


def test_overlapping_arrays_take_no_memory(tmp_path):
    """A file of 1.6 MB, in which 1000 names share 1.5 MB, was read into 1.5 GB."""
    one = {"dtype": "U8", "shape": [1_500_000], "data_offsets": [0, 1_500_000]}
    content = contents({f"a{i}": one for i in range(1000)}, bytes(1_500_000))
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="byte"):
            load(tmp_path / "x", content)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_file_from_elsewhere_may_have_metadata_of_any_name(tmp_path):
    content = contents({"__metadata__": {"complex": "yes", "format": "pt"}, "a": F64}, bytes(8))
    np.testing.assert_array_equal(load(tmp_path / "x", content)["a"], [0.0])


# --- mutations ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mutated")


def check_mutated(folder, content):
    """Load a small file: an array tree or FileFormatError, with little memory, and what was loaded can be saved."""
    path = folder / "x"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        try:
            found = fad.load(path)
        except FileFormatError:
            found = None
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    fad.save(path, found)


def saved(folder, tree):
    fad.save(folder / "whole", tree)
    return (folder / "whole").read_bytes()


NUMBERS = st.one_of(
    st.integers(-2, 70), st.sampled_from([2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63)]), st.floats()
)
SCALARS = st.one_of(
    st.none(), st.booleans(), NUMBERS, st.text(max_size=4), st.sampled_from([*files._NAMES, "BF16", "F99"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
)


@given(data=st.data())
def test_mutated_bytes_give_a_tree_or_a_format_error(folder, data):
    content = bytearray(saved(folder, TREE))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.integers(0, 12))
        new = data.draw(st.one_of(
            st.binary(max_size=12),
            st.sampled_from([b"9", b"-", b"[", b"]", b'"', b",", b"NaN", b"1e999", b"9" * 30, b"[" * 2000]),
            st.just(bytes(content[place : place + 40])),
        ))  # fmt: skip
        content[place : place + length] = new
    if data.draw(st.booleans()):  # the length of the header fits again
        content[:8] = max(content.rfind(b"}") - 7, 0).to_bytes(8, "little")
    check_mutated(folder, bytes(content))


@given(data=st.data())
def test_a_mutated_header_gives_a_tree_or_a_format_error(folder, data):
    content = saved(folder, TREE)
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    metadata = header["__metadata__"]
    inside = data.draw(st.sampled_from(["header", "fad", "complex"]))
    changed = header if inside == "header" else json.loads(metadata[inside])
    for _ in range(data.draw(st.integers(1, 3))):
        node = changed
        while True:
            keys = list(node) if type(node) is dict else range(len(node))
            if not keys:
                break
            key = data.draw(st.sampled_from(list(keys)))
            if type(node[key]) not in (dict, list) or data.draw(st.booleans()):
                node[key] = data.draw(JSON)
                break
            node = node[key]
    if inside != "header":
        metadata[inside] = json.dumps(changed)
    check_mutated(folder, contents(header, content[8 + length :]))
