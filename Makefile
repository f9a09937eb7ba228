# Only Python (3.11 or newer) and make are needed; each target makes its own environment.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test lint types test-matrix test-gpu bench bench-gpu docs clean

demo: $(VENV)/.demo
	$(BIN)/python -m fad.demo

test: $(VENV)/.test lint types
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.test
	$(BIN)/ruff check fad tests benchmarks examples

types: $(VENV)/.test
	$(BIN)/mypy

# On a machine with an NVIDIA GPU: its own environment with CuPy and the parts of CUDA that it needs, the contract and
# training on CuPy, and fad beside its CPU. With PyTorch and JAX too: make bench-gpu.
test-gpu: .venv-gpu/.test
	.venv-gpu/bin/python -c "import cupy; cupy.show_config()"
	FAD_GPU=required .venv-gpu/bin/python -m pytest -n 0 -m gpu tests/backends
	.venv-gpu/bin/python benchmarks/gpu.py

bench-gpu: .venv-gpu/.bench
	.venv-gpu/bin/python benchmarks/gpu.py

.venv-gpu/.test: pyproject.toml
	test -d .venv-gpu || $(PYTHON) -m venv .venv-gpu
	.venv-gpu/bin/pip install -q -e '.[test,cupy]'
	touch $@

.venv-gpu/.bench: .venv-gpu/.test
	.venv-gpu/bin/pip install -q torch 'jax[cuda12]'
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
	.venv-bench/bin/python benchmarks/jit.py --write

clean:
	rm -rf $(VENV) .venv-bench .venv-gpu .venv-matrix build dist

# Python 3.11 to 3.13 as far as they are installed, with the newest NumPy, and the oldest NumPy on the oldest Python.
MATRIX = python3.11 python3.12 python3.13
test-matrix:
	@for python in $(MATRIX); do \
	  $$python -c '' 2>/dev/null || { echo "$$python is not installed"; continue; }; \
	  echo "== $$python, newest NumPy"; \
	  test -d .venv-matrix/$$python || $$python -m venv .venv-matrix/$$python; \
	  .venv-matrix/$$python/bin/pip install -q -e '.[test]' || exit 1; \
	  .venv-matrix/$$python/bin/python -m pytest -n 2 || exit 1; \
	done
	@echo "== $(PYTHON), NumPy 2.0"
	@test -d .venv-matrix/oldest || $(PYTHON) -m venv .venv-matrix/oldest
	@.venv-matrix/oldest/bin/pip install -q -e '.[test]' 'numpy==2.0.*' 'scipy<1.15'
	@.venv-matrix/oldest/bin/python -m pytest -n 2

$(VENV)/.docs: pyproject.toml
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e '.[docs,scipy]'
	touch $@

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"
