# A thin front: each target is one or two commands that can be typed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Tests start hundreds of processes; without bytecode each compiles the product again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install up down test test-long test-chaos test-cluster test-infra test-soak lint format bench clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@echo "Installing into $(VENV) (a few minutes, once; a dot is a package)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[dev]' \
	    | awk '/^Collecting/ { printf "."; fflush() } /^Installing/ { printf " unpacking"; fflush() } \
	           /^Successfully installed/ { done = 1 } END { print ""; exit !done }'
	@touch $@

up: install
	$(BIN)/gpu-dev up $(ARGS)

down: install
	$(BIN)/gpu-dev down $(ARGS)

test: install
	$(BIN)/python -m pytest -m "not long and not soak" -n 3 --dist loadfile $(ARGS)

test-long: install
	$(BIN)/python -m pytest -m "long and not soak" -n 2 --dist worksteal $(ARGS)

test-chaos: install
	$(BIN)/python -m pytest -m "not soak" tests/chaos $(ARGS)

test-cluster: install
	$(BIN)/python -m pytest -m "not soak" tests/cluster $(ARGS)

test-infra: install
	$(BIN)/python -m pytest -m "not soak" tests/infra $(ARGS)

# The long tests in full depth, and what only an evening has time for; not in CI. By hand, as root, also:
# GPU_DEV_SOAK=1 .venv/bin/python -m pytest tests/cluster
test-soak: install
	GPU_DEV_SOAK=1 $(BIN)/python -m pytest -m "long or soak" -o "norecursedirs=.* tests/cluster tests/infra" tests $(ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install
	$(BIN)/python -m bench $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
