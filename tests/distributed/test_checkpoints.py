"""Checkpoints of all ranks: whole or not there, whatever is killed, and read by any number of ranks."""

import json
import os
import random
import time
from pathlib import Path

import killed_main
import numpy as np
import pytest
import test_mpi

from fad import distributed as D
from fad import nn, optim
from fad.files import FileFormatError

HERE = Path(__file__).parent
KILLS = int(os.environ.get("KILLS", "2"))  # the search: KILLS=20 pytest tests/distributed/test_checkpoints.py


def on_ranks(fun, size=2):
    return D.run_ranks(fun, size, timeout=30)


def value(comm):
    pieces = [D.Shard(np.arange(10.0)[5 * r : 5 * r + 5], 5 * r, 10) for r in range(2)]
    with nn.seed(0):
        model = nn.Linear(3, 2)
    mine = pieces[int(comm.rank)] if comm.size == 2 else D.Shard(np.arange(10.0), 0, 10)
    return {"model": model, "opt": [mine], "n": 3, "name": "run", "none": None, "pair": (np.int64(4), np.ones((2, 2)))}


@pytest.mark.parametrize("readers", [1, 2, 3])
def test_any_number_of_ranks_reads_what_others_wrote(tmp_path, readers):
    on_ranks(lambda comm: D.save(tmp_path, value(comm), step=5, comm=comm), 2)
    for step, found in on_ranks(lambda comm: D.load(tmp_path, comm=comm), readers):
        assert step == 5
        assert np.array_equal(found["opt"][0], np.arange(10.0))
        assert np.array_equal(found["pair"][1], np.ones((2, 2)))
        assert (found["n"], found["name"], found["none"], found["pair"][0]) == (3, "run", None, 4)
        model = nn.Linear(3, 2)
        model.load_state_dict(found["model"])


def test_each_array_is_written_once(tmp_path):
    on_ranks(lambda comm: D.save(tmp_path, value(comm), step=5, comm=comm), 2)
    index = json.loads((tmp_path / "step-000000000005" / "index.json").read_text())
    names = [set(part["arrays"]) for part in index["parts"]]
    assert names[0] & names[1] == {"opt.0"}  # of which each has its piece
    assert len(names[0] | names[1]) == 5


def test_the_last_two_stay_and_one_of_a_given_step_can_be_read(tmp_path):
    def run(comm):
        for step in (10, 20, 30):
            D.save(tmp_path, {"step": step}, step=step, comm=comm)
        D.save(tmp_path, {"step": 21}, step=20, comm=comm)  # a run that was repeated from step 10

    on_ranks(run)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000000000020"]
    assert D.load(tmp_path) == (20, {"step": 21})
    assert D.load(tmp_path / "nothing") is None
    with pytest.raises(FileNotFoundError):
        D.load(tmp_path, step=7)


def test_a_damaged_file_is_an_error(tmp_path):
    D.save(tmp_path, {"x": np.ones(100)}, step=1)
    (file,) = (tmp_path / "step-000000000001").glob("*.safetensors")
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    with pytest.raises(FileFormatError, match="damaged"):
        D.load(tmp_path)
    file.unlink()
    with pytest.raises(FileFormatError, match="no complete checkpoint"):
        D.load(tmp_path)


def test_a_rank_that_cannot_write_is_an_error_on_all_and_the_checkpoint_before_stays(tmp_path):
    def run(comm):
        D.save(tmp_path, {"x": 1}, step=1, comm=comm)
        wrong = {"x": object()} if comm.rank == 1 else {"x": 2}
        with pytest.raises(D.DistributedError, match="a checkpoint has arrays"):
            D.save(tmp_path, wrong, step=2, comm=comm)
        return D.load(tmp_path, comm=comm)

    assert on_ranks(run) == [(1, {"x": 1})] * 2
    assert len(list(tmp_path.iterdir())) == 1


def test_the_state_of_a_sharded_optimiser_goes_to_another_number_of_ranks(tmp_path):
    def run(comm, steps):
        w = [np.arange(7.0), np.ones((2, 2))]
        opt = optim.sharded(optim.Adam(w, lr=0.1), comm)
        found = D.load(tmp_path, comm=comm)
        if found:
            opt.load_state_dict(found[1]["opt"])
            for x, y in zip(w, found[1]["w"], strict=True):
                x[...] = y
        for _ in range(steps):
            opt.step([np.sin(x) for x in w])
        D.save(tmp_path, {"w": w, "opt": opt.shards()}, step=opt.steps, comm=comm)
        return w

    whole = [np.arange(7.0), np.ones((2, 2))]
    opt = optim.Adam(whole, lr=0.1)
    for _ in range(6):
        opt.step([np.sin(x) for x in whole])
    for size in (3, 1, 4):
        found = on_ranks(lambda comm: run(comm, 2), size)
    for w in found:
        for x, y in zip(w, whole, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)


def losses(text):
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("losses")]
    return {int(a): float(b) for a, b in (word.split(":") for word in lines[-1])}


@pytest.mark.skipif(test_mpi.MPIEXEC is None, reason="there is no mpiexec: pip install mpich")
@pytest.mark.parametrize("seed", range(KILLS))
def test_a_run_of_which_a_rank_is_killed_goes_on_from_its_last_checkpoint(tmp_path, seed):
    rng = random.Random(seed)
    steps, size = 10, rng.choice([2, 3])
    victim, when = rng.randrange(size), rng.randrange(steps)
    begin = time.monotonic()
    run = test_mpi.mpiexec(
        size, HERE / "killed_main.py", tmp_path, steps, victim, when, check=False, timeout=60
    )  # fmt: skip
    assert run.returncode != 0, f"rank {victim} of {size} did not die in step {when}"
    assert time.monotonic() - begin < 45  # the time-out of 20 s, the start and the end
    found = D.load(tmp_path)
    done = found[0] if found else 0
    assert when + 1 - killed_main.EVERY <= done <= when + 1
    again = test_mpi.mpiexec(rng.choice([1, 2, 3]), HERE / "killed_main.py", tmp_path, steps, timeout=60)
    expected = killed_main.train(D.init("alone"), tmp_path / "alone", steps)
    for step, value in losses(again.stdout).items():
        np.testing.assert_allclose(value, expected[step], rtol=1e-9)
    assert sorted(losses(again.stdout)) == list(range(done, steps))
