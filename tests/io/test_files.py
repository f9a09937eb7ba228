"""Files are written whole or not at all, read with every check, and resuming continues bit for bit."""

import json
import multiprocessing
import os
import pickle
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fad
from fad import data, files, nn, optim
from fad.files import FileFormatError
from fad.nn import functional as F

TREE = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": [np.array(1 + 2j), (np.array([True, False]), None, "text")],
    "a.b": np.float64(0.1),
    "n": 3,
    "x": float("inf"),
    "empty": np.zeros((0, 4), np.int8),
}


def equal(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for k in a:
            equal(a[k], b[k])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            equal(x, y)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b


def test_a_tree_goes_round(tmp_path):
    path = tmp_path / "tree.safetensors"
    fad.save(path, TREE)
    equal(fad.load(path), TREE)
    equal(fad.load(path, like=TREE), TREE)


def test_loaded_arrays_can_be_written(tmp_path):
    fad.save(tmp_path / "x", np.ones(3))
    x = fad.load(tmp_path / "x")
    x += 1.0
    assert x.sum() == 6


def test_the_safetensors_package_reads_and_writes_the_same_files(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy", reason="the format's own package is the reference")
    model = nn.Linear(3, 2, key=0)
    fad.save(tmp_path / "a.safetensors", model)
    found = numpy.load_file(tmp_path / "a.safetensors")
    equal(found, model.state_dict())
    numpy.save_file({"weight": found["weight"] + 1, "bias": found["bias"]}, tmp_path / "b.safetensors")
    equal(fad.load(tmp_path / "b.safetensors")["weight"], model.weight + 1)


def test_every_dtype_moves_both_ways_to_the_safetensors_package(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy", reason="the format's own package is the reference")
    codes = [code for name, code in files._NAMES.items() if name != "C64"]  # which the package has since 0.6
    tree = {code[1:]: np.arange(6).reshape(2, 3).astype(code) for code in codes}
    fad.save(tmp_path / "a", {**tree, "odd": tree["f4"].T[::-1], "big": tree["f8"].astype(">f8"), "0": np.array(1.0)})
    found = numpy.load_file(tmp_path / "a")
    equal({k: found.pop(k) for k in tree}, tree)
    equal(found, {"odd": tree["f4"].T[::-1], "big": tree["f8"], "0": np.array(1.0)})
    numpy.save_file(tree, tmp_path / "b")
    equal(fad.load(tmp_path / "b"), tree)


@pytest.mark.oracle
def test_weights_move_both_ways_to_torch(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch, the other side, is not installed")
    st = pytest.importorskip("safetensors.torch", reason="PyTorch's files need the safetensors package")
    mine = nn.Sequential(nn.Linear(3, 4, key=0), nn.BatchNorm1d(4), nn.ReLU(), nn.LSTM(4, 2, key=1))
    t = torch.nn
    theirs = t.Sequential(t.Linear(3, 4), t.BatchNorm1d(4), t.ReLU(), t.LSTM(4, 2)).double()
    fad.save(tmp_path / "mine", mine)
    theirs.load_state_dict(st.load_file(tmp_path / "mine"))
    theirs[0].weight.data += 1.0
    st.save_file(theirs.state_dict(), tmp_path / "theirs")
    loaded = fad.load(tmp_path / "theirs", like=mine)
    np.testing.assert_array_equal(loaded[0].weight, mine[0].weight + 1.0)
    assert list(loaded.state_dict()) == list(theirs.state_dict())


def test_a_truncated_file_is_an_error_at_every_length(tmp_path):
    path = tmp_path / "x"
    fad.save(path, {"a": np.arange(5.0), "b": np.ones(2)})
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        with pytest.raises(FileFormatError):
            fad.load(path)


def test_a_damaged_file_is_an_error_or_the_same_numbers_elsewhere(tmp_path):
    path = tmp_path / "x"
    fad.save(path, {"a": np.arange(5.0)})
    whole = path.read_bytes()
    start = len(whole) - 40
    for n in range(start):  # every byte of the header, made into another
        path.write_bytes(whole[:n] + bytes([whole[n] ^ 0x15]) + whole[n + 1 :])
        try:
            found = fad.load(path)
        except FileFormatError:
            continue
        values = list(found.values()) if isinstance(found, dict) else [found]
        assert all(isinstance(x, np.ndarray) for x in values)


@pytest.mark.parametrize("content", [b"", b"hello", pickle.dumps({"a": 1}), b"PK\x03\x04" + bytes(100)])
def test_a_foreign_file_is_an_error(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FileFormatError, match="not a safetensors file"):
        fad.load(tmp_path / "x")


@pytest.mark.parametrize("entry", [
    {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]},
    {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]},
    {"dtype": "F99", "shape": [1], "data_offsets": [0, 8]},
    {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]},
    {"dtype": "F64", "shape": [1]},
    [],
])  # fmt: skip
def test_a_header_that_lies_is_an_error(tmp_path, entry):
    text = json.dumps({"a": entry}).encode()
    (tmp_path / "x").write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(FileFormatError):
        fad.load(tmp_path / "x")


def test_what_does_not_fit_like_is_listed_and_changes_nothing(tmp_path):
    model = nn.Linear(3, 2, key=0)
    before = model.state_dict()
    fad.save(tmp_path / "x", {"model": nn.Linear(4, 2, key=1), "n": 3, "rest": [np.ones(2)]})
    with pytest.raises(FileFormatError) as caught:
        fad.load(tmp_path / "x", like={"model": model, "n": "three", "rest": [np.ones(3)]})
    parts = ("model: weight: shape (2, 4)", "n: expected 'three', found 3", "rest.0: expected an array of shape (3,)")
    for part in parts:
        assert part in str(caught.value)
    equal(model.state_dict(), before)


SINGLE = fad.tree.map(np.float32, nn.Linear(3, 2, key=0))


@pytest.mark.parametrize(("saved", "like"), [
    (np.ones(2), np.ones(2, np.float32)),
    (np.ones(2, np.float32), np.ones(2)),
    (np.array([1.5]), np.array([1])),
    (np.array([1]), np.array([1.5])),
    (np.array([1j]), np.array([1.0])),
    (np.float64(0.1), np.float32(0.1)),
    (nn.Linear(3, 2, key=0), SINGLE),
    (SINGLE, nn.Linear(3, 2, key=0)),
])  # fmt: skip
def test_an_array_of_another_dtype_than_like_is_an_error(tmp_path, saved, like):
    fad.save(tmp_path / "x", {"a": saved})
    with pytest.raises(FileFormatError, match=r"dtype (float|int|complex)"):
        fad.load(tmp_path / "x", like={"a": like})


def test_like_decides_the_byte_order(tmp_path):
    x = np.arange(3.0).astype(">f8")
    fad.save(tmp_path / "x", x)
    equal(fad.load(tmp_path / "x", like=x), x)


def test_an_array_called_metadata_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"'__metadata__'.*rename it"):
        fad.save(tmp_path / "x", {"a": np.ones(2), "__metadata__": np.ones(3)})
    assert not list(tmp_path.iterdir())
    tree = {"a": {"__metadata__": np.ones(3)}, "__metadata__": "text"}
    fad.save(tmp_path / "x", tree)
    equal(fad.load(tmp_path / "x"), tree)


# --- permissions, killed processes ------------------------------------------------------------------------------------

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and locks are those of POSIX")


@pytest.fixture
def umask():
    old = os.umask(0o022)
    yield os.umask
    os.umask(old)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, umask, mask):
    umask(mask)
    fad.save(tmp_path / "x", np.ones(2))
    assert mode(tmp_path / "x") == 0o666 & ~mask


@posix
@pytest.mark.parametrize("bits", [0o600, 0o640, 0o644, 0o444, 0o666])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, umask, bits):
    path = tmp_path / "x"
    fad.save(path, np.ones(2))
    path.chmod(bits)
    fad.save(path, np.zeros(2))
    assert mode(path) == bits
    path.chmod(0o600)
    equal(fad.load(path), np.zeros(2))


@posix
@pytest.mark.parametrize("bits", [0o600, 0o644])
def test_what_will_replace_a_file_is_private_while_it_is_written(tmp_path, umask, monkeypatch, bits):
    path = tmp_path / "x"
    fad.save(path, np.ones(2))
    path.chmod(bits)
    seen = []
    monkeypatch.setattr(files.os, "fsync", lambda _: seen.extend(map(mode, tmp_path.glob("x.*.part"))))
    fad.save(path, np.ones(2))
    assert seen == [0o600]


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path):
    path = tmp_path / "x"
    fad.save(path, np.ones(2))
    os.chown(path, 1234, 2345)
    fad.save(path, np.zeros(2))
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


@posix
def test_a_symbolic_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    fad.save(tmp_path / "far" / "x", np.ones(2))
    (tmp_path / "x").symlink_to(tmp_path / "far" / "x")
    fad.save(tmp_path / "x", np.zeros(2))
    assert (tmp_path / "x").is_symlink()
    equal(fad.load(tmp_path / "far" / "x"), np.zeros(2))


@posix
def test_only_a_file_is_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(FileExistsError, match="a tree is saved to a file"):
            fad.save(path, np.ones(2))
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


SLOW_SAVE = """
import os, sys, time
import numpy as np
import fad
from fad import files
def wait(handle):
    print("writing", flush=True)
    sys.stdin.read()
files.os.fsync = wait
fad.save(sys.argv[1], np.full(1000, 7.0))
"""


@pytest.fixture
def slow_save():
    """Start a process that saves to a path, and stays in the middle until its stdin is closed."""
    started = []

    def start(path):
        here = str(Path(fad.__file__).parents[1])
        run = subprocess.Popen(
            [sys.executable, "-c", SLOW_SAVE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])},
        )  # fmt: skip
        started.append(run)
        assert run.stdout.readline().strip() == b"writing"
        return run

    yield start
    for run in started:
        run.kill()
        run.wait()
        run.stdin.close()
        run.stdout.close()


@posix
def test_the_next_save_removes_what_a_killed_process_left(tmp_path, slow_save):
    path = tmp_path / "x"
    run = slow_save(path)
    (part,) = tmp_path.iterdir()
    run.send_signal(signal.SIGKILL)
    run.wait()
    others = ["x.best.part", "x.0123456789abcdef.part.txt", "y" + part.name[1:], "x.epoch_10.part"]
    for name in others:
        (tmp_path / name).touch()
    fad.save(path, np.ones(2))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["x", *others])


@posix
def test_a_save_leaves_the_part_file_of_one_that_is_alive(tmp_path, slow_save):
    path = tmp_path / "x"
    run = slow_save(path)
    (part,) = tmp_path.iterdir()
    fad.save(path, np.ones(2))
    assert part.exists()
    equal(fad.load(path), np.ones(2))
    run.communicate()
    assert run.returncode == 0
    equal(fad.load(path), np.full(1000, 7.0))
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def _save_often(path, value):
    for _ in range(60):
        fad.save(path, np.full(50, value))


def test_threads_and_processes_that_save_to_one_path_leave_one_whole_file(tmp_path):
    path = tmp_path / "x"
    workers = [threading.Thread(target=_save_often, args=(path, float(k))) for k in range(4)]
    spawn = multiprocessing.get_context("spawn")
    workers += [spawn.Process(target=_save_often, args=(path, float(k))) for k in range(4, 6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert all(w.exitcode == 0 for w in workers[4:])
    assert len(set(fad.load(path))) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    fad.save(path, np.ones(2))

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        fad.save(path, np.zeros(2))
    with pytest.raises(TypeError, match="a file holds"):
        fad.save(path, {"a": object()})
    monkeypatch.undo()
    equal(fad.load(path), np.ones(2))
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_traced_array_is_not_saved(tmp_path):
    with pytest.raises(TypeError, match="traced"):
        fad.grad(lambda x: fad.save(tmp_path / "x", x))(1.0)


def start():
    with nn.seed(0):
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
    return model, optim.AdamW(model, lr=optim.schedules.cosine(1e-2, 20))


def test_resuming_continues_bit_for_bit(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 4)), rng.integers(0, 3, 40)

    def steps(model, opt, n):
        for _ in range(n):
            for bx, by in data.batches((x, y), 8, key=opt.steps):
                opt.step(fad.grad(lambda m, bx, by: F.cross_entropy(m(bx), by))(model, bx, by))

    model, opt = start()
    steps(model, opt, 2)
    fad.save(tmp_path / "checkpoint", {"model": model, "opt": opt.state_dict()})
    steps(model, opt, 2)

    other, again = start()
    state = fad.load(tmp_path / "checkpoint")
    other.load_state_dict(state["model"])
    again.load_state_dict(state["opt"])
    steps(other, again, 2)
    equal(other.state_dict(everything=True), model.state_dict(everything=True))
