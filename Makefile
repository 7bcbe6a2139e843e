# Everything a contributor runs. Two commands set up a fresh machine: `git clone ...` and any of these targets.
# PYTHON: the interpreter that makes the virtual environment (3.11 or newer).
# N, SEED: how many clusters `make sim` simulates, and the seed of the first (by default another one each time).
# EXAMPLES: how many requests `make fuzz-api` makes up for each operation of the API.
# SOAK_MINUTES, SEED: how long `make soak` lasts at least, and the seed of its choices.
# ROUNDS: how much of the long tests to run; 1 is the full count, `make test` runs a tenth of it.

PYTHON ?= python3
VENV ?= .venv
ROUNDS ?= 0.1
N ?= 200
EXAMPLES ?= 5000
SOAK_MINUTES ?= 60
BIN := $(VENV)/bin

.PHONY: demo cluster test check format bench sim mutants soak fuzz-api docs lock e2e-compose clean

demo: $(VENV)/.runtime
	$(BIN)/python -m demo.story

cluster: $(VENV)/.runtime
	$(BIN)/python -m demo.cluster

test: $(VENV)/.dev
	ROUNDS=$(ROUNDS) $(BIN)/python -m pytest

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/layers tests/docs/test_pages.py tests/docs/test_security.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.runtime
	$(BIN)/python -m bench $(BENCH)

sim: $(VENV)/.dev
	$(BIN)/python -m tests.sim --runs $(N) $(if $(SEED),--seed $(SEED))

mutants: $(VENV)/.dev
	$(BIN)/python -m tests.sim --mutants

soak: $(VENV)/.dev
	$(BIN)/python -m tests.soak --minutes $(SOAK_MINUTES) $(if $(SEED),--seed $(SEED))

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

e2e-compose: $(VENV)/.dev
	$(BIN)/python -m pytest -q tests/e2e/test_compose.py

# What the image is made of: versions and hashes as PyPI has them, whatever pip of this machine is told beside.
lock: $(VENV)/lock/bin/pip-compile
	env -u PIP_FIND_LINKS PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND='make lock' $< $(LOCKING) \
		--output-file contrib/docker/requirements.lock pyproject.toml
	env -u PIP_FIND_LINKS PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND='make lock' $< $(LOCKING) \
		--output-file contrib/docker/build.lock contrib/docker/build.in

LOCKING := --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host

fuzz-api: $(VENV)/.dev
	FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q -s tests/fuzz

clean:
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; say PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,docs]'
	touch $@ $(VENV)/.runtime

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@ $(VENV)/.runtime

$(VENV)/lock/bin/pip-compile: | $(VENV)/bin/python
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet --disable-pip-version-check 'pip-tools>=7.5'
