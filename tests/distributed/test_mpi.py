"""The same on processes of MPI, started by its mpiexec; each file is one run of several processes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytest.importorskip("mpi4py", reason="mpi4py is not installed")
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="there is no mpiexec: pip install mpich")


# Open MPI starts no more processes than there are cores, and none as root, as in containers, unless it is told to.
OPEN_MPI = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}  # fmt: skip


def mpiexec(size, *command, timeout=120, check=True, **more):
    """Run a file on several processes with one thread each."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "FAD_NUM_THREADS"), "1")
    root = str(HERE.parent.parent)
    path = os.pathsep.join(filter(None, [root, str(HERE), os.environ.get("PYTHONPATH")]))
    run = subprocess.run(
        [MPIEXEC, "-n", str(size), sys.executable, "-W", "error", *map(str, command)],
        env={**OPEN_MPI, **os.environ, **threads, "PYTHONPATH": path, **more},
        capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    if check:
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    return run


@pytest.mark.parametrize(("size", "every", "checks"), [(2, 4, 54), (3, 7, 31)])  # threads run all, on 1 to 4 ranks
def test_collectives_in_every_mode_on_processes(size, every, checks):
    assert f" {checks} checks passed" in " " + mpiexec(size, HERE / "ranks_main.py", size, every).stdout


def test_both_lines_are_named_where_ranks_call_different_things(tmp_path):
    program = tmp_path / "mismatch.py"
    program.write_text(
        "import numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=10)\nx = np.ones(2)\n"
        "if comm.rank:\n    comm.all_gather(x)\nelse:\n    comm.all_reduce(x)\n"
    )
    run = mpiexec(2, program, check=False, FAD_DISTRIBUTED_DEBUG="1")
    assert run.returncode != 0
    assert "MismatchError" in run.stderr
    assert "mismatch.py:6: comm.all_gather(x)" in run.stderr
    assert "mismatch.py:8: comm.all_reduce(x)" in run.stderr


def test_a_rank_that_has_ended_is_named_in_the_debug_mode(tmp_path):
    program = tmp_path / "ended.py"
    program.write_text(
        "import numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=10)\n"
        "if comm.rank == 0:\n    comm.all_reduce(np.ones(2))\n"
    )
    run = mpiexec(2, program, check=False, FAD_DISTRIBUTED_DEBUG="1")
    assert run.returncode != 0
    assert "nothing more at the end of its program" in run.stderr


def test_a_number_that_differs_from_rank_to_rank_is_found_in_the_debug_mode(tmp_path):
    program = tmp_path / "scaled.py"
    program.write_text(
        "import numpy as np, fad\nfrom fad import distributed as D\ncomm = D.init(timeout=20)\n"
        "w, r = np.ones(2), int(comm.rank)\n"
        "def right(w):\n    if r == 0:\n        print(float(fad.stop_gradient(w[0] * 3.0)))\n"
        "    return comm.all_reduce(np.sum(w * 2.0) * (comm.rank + 1))\n"
        "np.testing.assert_allclose(D.grad(right, comm)(w), [6.0, 6.0])\n"
        "D.grad(lambda w: comm.all_reduce(np.sum(w * 2.0) * (r + 1)), comm)(w)\n"
    )
    run = mpiexec(2, program, check=False, FAD_DISTRIBUTED_DEBUG="1")
    assert run.returncode != 0
    assert "a Python number differs from rank to rank: 1 on rank 0, 2 on rank 1, at" in run.stderr
    assert "scaled.py:10" in run.stderr


def test_waiting_longer_than_the_time_out_ends_the_run_and_names_the_line(tmp_path):
    program = tmp_path / "waiting.py"
    program.write_text(
        "import time, numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=1)\n"
        "if comm.rank:\n    time.sleep(60)\ncomm.all_reduce(np.ones(2))\n"
    )
    run = mpiexec(2, program, check=False, timeout=30)
    assert run.returncode != 0
    assert "rank 0 of 2 has waited for the others for more than 1 s" in run.stderr
    assert "waiting.py, line 6" in run.stderr


def test_an_error_on_one_rank_ends_the_run_on_all(tmp_path):
    program = tmp_path / "failing.py"
    program.write_text(
        "import numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=60)\n"
        "if comm.rank:\n    raise ValueError('no data')\ncomm.all_reduce(np.ones(2))\n"
    )
    run = mpiexec(2, program, check=False, timeout=30)
    assert run.returncode != 0
    assert "ValueError: no data" in run.stderr
    assert "rank 1 of 2 failed; the run ends on all ranks" in run.stderr


def test_processes_reduce_what_numpy_reduces_and_refuse_a_message_of_another_size(tmp_path):
    program = tmp_path / "operands.py"
    program.write_text(
        "import numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=20)\nr = int(comm.rank)\n"
        "for dtype in ('f2', 'f4', 'f8', 'c16'):\n"
        "    x = np.array([np.nan, 1.0] if r else [1.0, 2.0], dtype)\n"
        "    for op, expected in (('max', [np.nan, 2.0]), ('min', [np.nan, 1.0])):\n"
        "        np.testing.assert_array_equal(np.real(comm.all_reduce(x, op)), expected)\n"
        "x = np.array([True, r == 0])\n"
        "np.testing.assert_array_equal(comm.all_reduce(x), [2, 1])\n"
        "np.testing.assert_array_equal(comm.all_reduce(x, 'min'), [True, False])\n"
        "x = np.ones(2, '>f8')\n"
        "np.testing.assert_array_equal(comm.all_reduce(x), [2.0, 2.0])\n"
        "np.testing.assert_array_equal(comm.start_all_reduce(x).wait(), [2.0, 2.0])\n"
        "np.testing.assert_array_equal(comm.all_gather(x), np.ones((2, 2)))\n"
        "assert comm.all_reduce(np.zeros((0, 2)), 'max').shape == (0, 2)\n"
        "for n in (2, 4):\n    comm.send(np.ones(n), 1 - r)\n    try:\n        comm.recv(np.ones(3), 1 - r)\n"
        "    except D.MismatchError as error:\n"
        "        assert f'was sent float64[{n}], {8 * n} bytes' in str(error)\n"
        "    else:\n        raise AssertionError\n"
        "comm.send(np.ones(2), 1 - r)\nnp.testing.assert_array_equal(comm.recv(np.zeros(2), 1 - r), [1, 1])\n"
    )
    mpiexec(2, program)


def test_two_processes_reduce_large_arrays_in_the_order_of_the_ranks_and_refuse_those_of_another_size(tmp_path):
    program = tmp_path / "large.py"
    program.write_text(
        "import numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=20)\nr = int(comm.rank)\n"
        "ops = {'sum': np.add, 'prod': np.multiply, 'max': np.maximum, 'min': np.minimum}\n"
        "def data(rank, dtype):\n"
        "    rng = np.random.default_rng(rank)\n"
        "    x = rng.normal(size=(2, 6000)) + (1j * rng.normal(size=(2, 6000)) if dtype == 'c8' else 0)\n"
        "    x[rank, 7] = [np.nan, -0.0][rank]\n"
        "    x[1 - rank, 7] = 0.0\n"
        "    return (10 * x).astype(dtype) if dtype != 'i2' else np.nan_to_num(10 * x).astype(dtype)\n"
        "for dtype in ('f2', 'f4', 'f8', 'c8', 'i2'):\n"
        "    a, b = data(0, dtype), data(1, dtype)\n"
        "    x = (a, b)[r]\n"
        "    for op, reduce in ops.items():\n"
        "        assert comm.all_reduce(x, op).tobytes() == reduce(a, b).tobytes(), (dtype, op)\n"
        "        assert comm.all_reduce(x.T, op).tobytes() == reduce(a.T, b.T).tobytes(), (dtype, op)\n"
        "    total = a + b\n"
        "    assert comm.start_all_reduce(x).wait().tobytes() == total.tobytes()\n"
        "    assert comm.reduce_scatter(x).tobytes() == total[r].tobytes()\n"
        "    assert comm.start_reduce_scatter(x).wait().tobytes() == total[r].tobytes()\n"
        "    permuted = comm.start_permute(x, [(0, 1), (1, 0)])\n"
        "    handles = [comm.start_all_reduce(x), permuted, comm.start_reduce_scatter(x)]\n"
        "    sums, other, mine = [h.wait() for h in handles]\n"
        "    assert sums.tobytes() == total.tobytes() and mine.tobytes() == total[r].tobytes()\n"
        "    assert other.tobytes() == (b, a)[r].tobytes()\n"
        "from mpi4py import MPI\n"
        "calls = comm.all_reduce, comm.shift, lambda x: comm.start_all_reduce(x).wait()\n"
        "if 'Open MPI' in MPI.Get_library_version():  # it writes a message that is too long beyond the array's end\n"
        "    calls = calls[:1]\n"
        "for call, n in ((*[(call, 3000) for call in calls], (comm.all_reduce, 100000))):\n"  # in shared memory, or not
        "    try:\n        call(np.ones(n * (r + 1)))\n"
        "    except D.MismatchError as error:\n"
        "        assert f'expects float64[{n * (r + 1)}]' in str(error)\n    else:\n        raise AssertionError\n"
    )
    mpiexec(2, program)


def test_large_arrays_one_after_the_other_keep_what_they_were_whichever_rank_is_late(tmp_path):
    program = tmp_path / "turns.py"
    program.write_text(
        "import time, numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=60)\nr = int(comm.rank)\n"
        "lengths = np.random.default_rng(0).choice([1, 2100, 5000, 131072, 131073, 200000], 60)\n"
        "found = []\n"
        "for k, n in enumerate(lengths):\n"
        "    x = np.full(n, k + 0.25 * r)\n"
        "    if k % 7 == 3 * r:\n        time.sleep(0.002)\n"
        "    found.append(comm.all_reduce(x))\n"
        "    x[:] = -1.0\n"
        "for k, y in enumerate(found):\n"
        "    assert (y == 2 * k + 0.25).all(), (k, y)\n"
    )
    mpiexec(2, program)


def test_a_message_of_another_dtype_or_shape_is_refused_and_the_next_one_is_received(tmp_path):
    program = tmp_path / "letters.py"
    program.write_text(
        "import numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=20)\nr = int(comm.rank)\n"
        "many = (1, 2, 1, 3, 1, 2)\n"
        "for sent, like in ((np.arange(4), np.zeros(4)), (np.ones(8, 'f4'), np.zeros(4)), (np.ones(1), np.ones(0)),\n"
        "    (np.ones((2, 3)), np.ones(6)), (np.ones((2, 5000)), np.ones((5000, 2))), (np.ones(9000), np.ones(2)),\n"
        "    (np.ones(2), np.ones(9000)), (np.ones(0), np.ones(0, 'f4')), (np.ones(many), np.ones(many[::-1])),\n"
        "    (np.array(['ab']), np.array(['abc'])), (np.zeros(2, 'M8[D]'), np.zeros(2, 'M8[s]'))):\n"
        "    if r == 0:\n        comm.send(sent, 1, tag=3)\n        comm.send(sent, 1, tag=3)\n        continue\n"
        "    try:\n        comm.recv(like, 0, tag=3)\n"
        "    except D.MismatchError as error:\n"
        "        assert f'expects {like.dtype}{list(like.shape)}' in str(error), error\n"
        "        kind = 'datetime64' if sent.dtype.kind == 'M' else str(sent.dtype)\n"
        "        assert f'was sent {kind}{list(sent.shape)[:4]}, {sent.nbytes} bytes' in str(error), error\n"
        "    else:\n        raise AssertionError((sent, like))\n"
        "    y = comm.recv(np.zeros_like(sent), 0, tag=3)\n"
        "    np.testing.assert_array_equal(y, sent)\n"
        "    assert y.flags.owndata and y.flags.writeable and y.dtype == sent.dtype\n"
        "for x in (np.float64(3.0), np.ones((3, 2)).T, np.arange(3.0)[::-1], np.ones(2, '>f8'),\n"
        "    np.ones((300, 200)).T, np.array(True), np.ones(70000, 'c8'), np.ones((0, 3))):\n"
        "    if r:\n        y = comm.recv(x, 0)\n        np.testing.assert_array_equal(y, x)\n"
        "        assert type(y) is type(x) and y.shape == np.shape(x), (y, x)\n"
        "    else:\n        comm.send(x, 1)\n"
    )
    mpiexec(2, program)


def test_a_message_of_another_dtype_or_shape_is_refused_in_the_debug_mode(tmp_path):
    program = tmp_path / "messages.py"
    program.write_text(
        "import numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=20)\nr = int(comm.rank)\n"
        "for sent, like in ((np.arange(4), np.zeros(4)), (np.ones(8, 'f4'), np.zeros(4)),\n"
        "    (np.ones((2, 3)), np.ones(6))):\n"
        "    if r == 0:\n        comm.send(sent, 1, tag=3)\n        continue\n"
        "    try:\n        comm.recv(like, 0, tag=3)\n"
        "    except D.MismatchError as error:\n"
        "        assert f'expects {like.dtype}{list(like.shape)}' in str(error), error\n"
        "        assert f'was sent {sent.dtype}{list(sent.shape)}' in str(error), error\n"
        "        assert 'messages.py:8: comm.send(sent, 1, tag=3)' in str(error), error\n"
        "    else:\n        raise AssertionError\n"
        "comm.send(np.ones(2), 1 - r)\nnp.testing.assert_array_equal(comm.recv(np.zeros(2), 1 - r), [1, 1])\n"
    )
    mpiexec(2, program, FAD_DISTRIBUTED_DEBUG="1")


def test_an_error_of_mpi_says_that_arrays_may_have_different_sizes(tmp_path):
    program = tmp_path / "sizes.py"
    program.write_text(
        "import numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=20)\n"
        "comm.broadcast(np.ones(4 if comm.rank else 5))\n"
    )
    run = mpiexec(2, program, check=False, timeout=60)
    assert run.returncode != 0
    assert "broadcast of float64[4] failed on rank 1, and MPI says: " in run.stderr
    assert "FAD_DISTRIBUTED_DEBUG=1 compares that" in run.stderr
    assert "sizes.py:4" in run.stderr


def test_two_processes_refuse_to_reduce_large_arrays_of_two_dtypes(tmp_path):
    program = tmp_path / "dtypes.py"
    program.write_text(
        "import numpy as np\nfrom fad import distributed as D\ncomm = D.init(timeout=20)\nr = int(comm.rank)\n"
        "for mine in ([np.ones(4000), np.ones(8000, 'f4')], [np.ones(4000), np.ones(4000, int)]):\n"
        "    try:\n        comm.all_reduce(mine[r])\n"
        "    except D.MismatchError as error:\n"
        "        assert f'was sent 32000 bytes, {mine[1 - r].dtype}[{mine[1 - r].size}]' in str(error), error\n"
        "    else:\n        raise AssertionError\n"
        "np.testing.assert_array_equal(comm.all_reduce(np.ones(4000, bool), 'max'), True)\n"
    )
    mpiexec(2, program)


def test_gradients_of_one_step_after_the_other_keep_what_they_were_beside_large_messages_under_way(tmp_path):
    program = tmp_path / "steps.py"
    program.write_text(
        "import numpy as np, fad\nfrom fad import distributed as D\ncomm = D.init(timeout=60)\nr = int(comm.rank)\n"
        "loss = lambda w, x: np.sum(np.sin(w[0] * x)) + np.sum(w[1] ** 2 * x[0])\n"
        "w, x = [np.linspace(0, 1, 5000), np.ones((30, 7)).T], np.linspace(1, 2, 5000) + r\n"
        "serial = fad.grad(lambda w: (loss(w, x - r) + loss(w, x - r + 1)) / 2)\n"
        "for wrap in (lambda f: f, fad.jit):\n"
        "    step, found = wrap(D.value_and_grad(loss, comm)), []\n"
        "    for k in range(6):\n"
        "        under_way = comm.start_permute(np.full(400000, r + k), [(0, 1), (1, 0)])\n"
        "        if k % 2 == r:\n            assert np.all(under_way.wait() == 1 - r + k)\n"
        "        found.append(step([a + k for a in w], x)[1])\n"
        "        assert np.all(under_way.wait() == 1 - r + k)\n"
        "    for k, g in enumerate(found):\n"
        "        for a, b in zip(g, serial([a + k for a in w])):\n"
        "            np.testing.assert_allclose(a, b, atol=1e-12)\n"
    )
    mpiexec(2, program)


def test_what_no_process_waits_for_is_let_go_of_once_it_has_arrived(tmp_path):
    program = tmp_path / "left.py"
    program.write_text(
        "import numpy as np, fad\nfrom fad import distributed as D\ncomm = D.init(timeout=60)\nr = int(comm.rank)\n"
        "def begin(x):\n"
        "    comm.start_permute(x, [(0, 1), (1, 0)])\n    comm.start_all_reduce(x)\n    comm.start_all_gather(x[:9])\n"
        "    return np.sum(x)\n"
        "for f in (begin, fad.jit(begin)):\n"
        "    for k in range(20):\n"
        "        f(np.full((10, 100000)[k % 2], float(k)))\n"
        "        assert comm.all_reduce(np.full(50000, 1.0 + k))[-1] == 2.0 + 2 * k\n"
        "    comm.barrier()\n"
        "    assert np.all(comm.start_permute(np.full(100000, r), [(0, 1), (1, 0)]).wait() == 1 - r)\n"
        "    comm.barrier()\n"
        "    comm.start_all_reduce(np.ones(2)).wait()\n"
        "    assert len(comm.left) <= 3, len(comm.left)\n"
    )
    mpiexec(2, program)
