# Everything runs in a virtual environment of its own; the machine's packages stay as they are.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# A machine without a C compiler gets the clang of the `ziglang` wheel.
COMPILER := $(shell command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 || echo ,compiler)

.PHONY: help install demo check test clean

help:           ## list the targets
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

install: $(VENV)/installed  ## make the virtual environment at the pinned versions

$(VENV)/installed: pyproject.toml constraints.txt
	@echo "installing about 1.2 GB of packages into $(VENV), which takes a minute or two ..."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev$(COMPILER)]'
	@touch $@

demo: install   ## optimize the three Gemma-4 decode kernels on this processor, small sizes
	$(BIN)/kernelwright run examples/gemma4-decode/cpu-small.toml
	@run=$$(ls -td runs/gemma4-decode-small-*/ | head -n 1); run=$${run%/}; \
	echo; $(BIN)/kernelwright tree $$run; echo; $(BIN)/kernelwright run $$run

check: install  ## style, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: check     ## all checks and all tests
	$(BIN)/pytest --cov

clean:          ## remove the virtual environment and caches, never a run
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
