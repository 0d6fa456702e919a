# Everything happens in a virtual environment inside this folder; nothing global is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JVM_VENV := .venv-jvm

.PHONY: demo test test-jvm lint bench clean

demo: $(STAMP)  ## train a small model to search and answer: a table, a curve, transcripts
	$(BIN)/turngym demo

test: $(STAMP)  ## lint, types and the test suite
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-jvm:  ## ScienceWorld's original engine, in an environment of its own; needs Java 8 or newer
	$(PYTHON) -m venv $(JVM_VENV)
	$(JVM_VENV)/bin/python -m pip install --quiet -c constraints.txt -e '.[dev,science-jvm]'
	$(JVM_VENV)/bin/python -m pytest -m jvm tests/envs/science_world tests/benchmarks

lint: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/codespell

bench: $(STAMP)  ## speed benchmarks; figures of record stand in benchmarks/RESULTS.md
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-disable-gc -p no:xdist

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "turngym needs Python 3.11 or newer; name one with: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[train,dense,web,dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) $(JVM_VENV) .pytest_cache .ruff_cache .hypothesis build *.egg-info
