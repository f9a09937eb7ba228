# Only Python (3.11 or newer) and make are needed; each target makes its own environment.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test lint types test-matrix test-gpu bench docs clean

demo: $(VENV)/.demo
	$(BIN)/python -m fad.demo

test: $(VENV)/.test lint types
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.test
	$(BIN)/ruff check fad tests benchmarks examples

types: $(VENV)/.test
	$(BIN)/mypy

test-gpu: $(VENV)/.test
	$(BIN)/python -m pytest -m gpu

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

clean:
	rm -rf $(VENV) .venv-bench .venv-matrix build dist
