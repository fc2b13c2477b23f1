# Everything runs in a virtual environment of its own, .venv, which this file makes and keeps up to date.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help quickstart test check clean

PYTHON ?= python3
PIP ?= $(BIN)/python -m pip
RESULTS ?= results/quickstart
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# pip's own lines are left out but for the downloads that take a while.
DOWNLOADS := { grep --line-buffered -E 'Downloading .*[MG]B\)' || true; }
export PIP_DISABLE_PIP_VERSION_CHECK := 1

define install
@test -e $(VENV)/.installed-run || \
  echo 'The first installation takes minutes: torch alone is some hundred MB for a CPU, some GB with CUDA.'
@echo 'Installing $(1) into $(VENV)'
@$(PIP) install -c constraints.txt -e '$(1)' | $(DOWNLOADS)
@touch $@ $(VENV)/.installed-run
endef

help:
	@echo 'make quickstart  measure a first CPU/GPU ratio on this host, a few minutes: table, PDF and answer'
	@echo 'make test        run the tests; ARGS="-k placement" is passed to pytest'
	@echo 'make check       linter, formatter, types and the layering of the packages'
	@echo 'make clean       remove the virtual environment and every cache; results stay'
	@echo
	@echo 'Each installs what it needs into $(VENV). PYTHON=python3.12 chooses another Python (3.11 or newer),'
	@echo 'RESULTS=folder another place for the results of the quickstart.'

# A sweep that was interrupted goes on where it stopped; one that is complete is only analysed again.
quickstart: $(VENV)/.installed-run
	@$(BIN)/cgratio sweep sweeps/quickstart.yaml --out '$(RESULTS)' $$(test -e '$(RESULTS)' && echo --resume)
	@$(BIN)/cgratio analyze '$(RESULTS)'
	@echo
	@$(BIN)/cgratio report '$(RESULTS)'

test: $(VENV)/.installed-test
	@$(BIN)/python -m pytest $(ARGS)

check: $(VENV)/.installed-check
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

clean:
	rm -rf $(VENV) build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp says what is installed; it is made anew when the interpreter or a list of packages changes.
$(VENV)/.installed-run: $(BIN)/python pyproject.toml constraints.txt
	$(call install,.)

$(VENV)/.installed-test $(VENV)/.installed-check: $(VENV)/.installed-%: $(BIN)/python pyproject.toml constraints.txt
	$(call install,.[$*])

$(BIN)/python:
	@command -v '$(PYTHON)' >/dev/null || \
	  { echo '$(PYTHON) is not installed; name a Python 3.11 or newer: make PYTHON=/path/to/python3' >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$$('$(PYTHON)' --version) is too old; name a Python 3.11 or newer: make PYTHON=/path/to/python3" >&2; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo 'The venv module of $(PYTHON) is not installed; on Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }
	@'$(PYTHON)' -m venv --clear $(VENV)
