# Everything runs in a virtual environment of its own; the machine's packages stay as they are.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# A machine without a C compiler gets the clang of the `ziglang` wheel.
COMPILER := $(shell command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 || echo ,compiler)

# The vendor's toolchain of the `rngd` target, in environments of its own: it runs on x86-64 Linux
# alone, two versions of it are tested side by side, and it pins packages that are pinned here too.
TOOLCHAINS := $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),2026.4.0 2026.3.0)
RNGD := $(TOOLCHAINS:%=$(VENV)-rngd-%)
RUNTIME := $(VENV)-rngd-check
WITH_RNGD = KERNELWRIGHT_RNGD=$$(echo $(abspath $(RNGD)) | tr ' ' ':')
PIP_RNGD = install --quiet --disable-pip-version-check typing-extensions

.PHONY: help install demo check test test-rngd clean

help:           ## list the targets
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

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

test: check $(RNGD:=/installed)  ## all checks and all tests but those of RNGD's functional runtime
	$(WITH_RNGD) $(BIN)/pytest --cov --cov-report= --cov-fail-under=0 -n 2 --dist loadfile -m 'not (rngd_check or ray or device)'
	$(WITH_RNGD) $(BIN)/pytest --cov --cov-append -m '(ray or device) and not rngd_check'

$(VENV)-rngd-%/installed:
	@echo "installing about 300 MB of RNGD's toolchain $* ..."
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip $(PIP_RNGD) furiosa-kernels==$* furiosa-tcc==$*
	@touch $@

test-rngd: install $(RUNTIME)/installed  ## run RNGD's kernels on the processor (several GB of packages)
	KERNELWRIGHT_RNGD=$(abspath $(RUNTIME)) $(BIN)/pytest -m rngd_check

$(RUNTIME)/installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip $(PIP_RNGD) furiosa-kernels==2026.4.0 furiosa-tcc==2026.4.0 furiosa-torch==2026.4.0
	@touch $@

clean:          ## remove the virtual environment and caches, never a run
	rm -rf $(VENV) $(RNGD) $(RUNTIME) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
