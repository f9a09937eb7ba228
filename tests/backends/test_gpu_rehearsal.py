"""What is to run on a GPU runs here on a module with CuPy's names, so that it works when a GPU is there.

Each runs in a process of its own, where `import cupy` finds that module.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BEGIN = """
import runpy, sys
sys.path[:0] = [{here!r}, {root!r}]
import fake_cupy
sys.modules.update(fake_cupy.MODULES)
"""


def run(program):
    begin = BEGIN.format(here=str(HERE), root=str(HERE.parents[1]))
    return subprocess.run(
        [sys.executable, "-c", begin + program], capture_output=True, text=True, cwd=HERE.parents[1], timeout=600
    )


def test_the_tests_for_a_gpu_pass_on_a_module_with_cupys_names():
    some = "not this_cupy and not stay_on_the_gpu or special.erf or [matmul or [conv or linalg.expm or [sin or airy"
    path = str(HERE / "test_gpu.py")
    done = run(
        f"import os, pytest; os.environ['FAD_GPU'] = 'required'\n"
        f"sys.exit(pytest.main(['-q', '-n', '0', '-p', 'no:cacheprovider', '-m', 'gpu', {path!r}, '-k', {some!r}]))"
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout


def test_the_benchmark_for_a_gpu_runs_on_a_module_with_cupys_names():
    done = run("sys.argv = ['gpu.py', '--small']\nrunpy.run_path('benchmarks/gpu.py', run_name='__main__')")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    for name in ("chain", "mlp", "attention", "cnn"):
        assert f"{name}  " in done.stdout
    assert "fad, GPU" in done.stdout
    assert "fad, GPU, jit" in done.stdout
    assert "GPU : CPU" in done.stdout
