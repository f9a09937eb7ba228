"""What is to run on a GPU runs here on a module with CuPy's names, so that it works when a GPU is there.

Each runs in a process of its own, where `import cupy` finds that module.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BEGIN = """
import runpy, sys
sys.path[:0] = [{here!r}, {root!r}, {root!r} + "/benchmarks"]
import fake_cupy
sys.modules.update(fake_cupy.MODULES)
"""


def run(program):
    begin = BEGIN.format(here=str(HERE), root=str(HERE.parents[1]))
    return subprocess.run(
        [sys.executable, "-c", begin + program], capture_output=True, text=True, cwd=HERE.parents[1], timeout=600
    )


def test_the_tests_for_a_gpu_pass_on_a_module_with_cupys_names():
    # A matrix without a Cholesky factor is NumPy's error on this module, which a GPU does not raise; and it records
    # no launches.
    all_but = "not this_cupy and not definite and not replay and not recorded and not stay_on_the_gpu"
    some = f"{all_but} or special.erf or [matmul or [conv or linalg.expm or [sin or airy"
    path = str(HERE / "test_gpu.py")
    done = run(
        f"import os, pytest; os.environ['FAD_GPU'] = 'required'\n"
        f"sys.exit(pytest.main(['-q', '-n', '0', '-p', 'no:cacheprovider', '-m', 'gpu', {path!r}, '-k', {some!r}]))"
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout


BENCHMARK = "sys.argv = ['gpu.py', '--small']\nrunpy.run_path('benchmarks/gpu.py', run_name='__main__')"


def test_the_benchmark_for_a_gpu_runs_on_a_module_with_cupys_names():
    names = ("chain", "cnn step")  # a gradient and a step of training
    done = run(BENCHMARK.replace("'--small'", "'--small', " + repr(names)[1:-1]))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    for name in names:
        lines = {cells[1]: cells[2:] for cells in table if cells[0] == name}
        assert {"fad, CPU", "fad, GPU", "fad, GPU, jit", "GPU : CPU"} <= set(lines)
        assert all(float(lines[library][0]) > 0 for library in ("fad, CPU", "fad, GPU", "fad, GPU, jit"))
        assert float(lines["fad, GPU"][2]) == 1.0  # MiB, of the module's pool


def test_a_library_that_fails_or_dies_leaves_the_others_their_lines(tmp_path):
    (tmp_path / "torch.py").write_text("raise RuntimeError('a library of CUDA is missing')")
    (tmp_path / "jax.py").write_text("import os, sys\nprint('out of memory', file=sys.stderr, flush=True)\nos.abort()")
    (tmp_path / "torch-1.dist-info").mkdir()
    (tmp_path / "torch-1.dist-info" / "METADATA").write_text("Name: torch\nVersion: 1\n")
    only_one = BENCHMARK.replace("'--small'", "'--small', 'chain'")
    done = run(f"sys.path.insert(0, {str(tmp_path)!r})\n{only_one}")
    assert "PyTorch at chain (status 1)" in done.stderr
    assert "a library of CUDA is missing" in done.stderr
    assert "JAX, jit at chain (status -6)" in done.stderr
    assert "out of memory" in done.stderr
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert done.stdout.count("fad, GPU, jit |") == 1
