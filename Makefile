# Each target sets up what it needs in .venv; the second run finds it there.
# Another interpreter: make test PYTHON=python3.13

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# At most this many test processes, and never more than there are cores.
MAX_PROCESSES ?= 4

# Nothing of the caller's Python environment may leak into ours.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONWARNINGS VIRTUAL_ENV CONDA_PREFIX
unexport ISPLITLBI_BACKEND NUMBA_DISABLE_JIT

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test coverage browser lowest package lint bench docs clean

help:  ## say what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' \
		| awk -F '\t' '{ printf "  make %-9s %s\n", $$1, $$2 }'

setup: $(VENV)/.ready-dev  ## install everything a developer needs into .venv

demo: $(VENV)/.ready-report  ## simulate a study, fit it, print what was found, write the report
	$(BIN)/isplitlbi demo --report demo-report.html --force

PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses $(MAX_PROCESSES) --dist loadfile --no-loadscope-reorder

test: $(VENV)/.ready-test browser  ## all tests, then the backend tests without compilation
	$(PYTEST)
	ISPLITLBI_BACKEND=numpy $(BIN)/python -m pytest -m backend -q \
		-n auto --maxprocesses $(MAX_PROCESSES) $$(grep -rl --include='*.py' mark.backend tests)

coverage: $(VENV)/.ready-test browser  ## all tests once more, with the lines and branches that they run
	$(PYTEST) --cov --cov-report=term

# The tests of the report drive Chromium. Where it is missing and may be installed, it is; otherwise
# they are skipped and say so.
browser:
	@for name in chromium chromium-browser google-chrome; do \
		command -v $$name >/dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium for the tests of the report."; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends chromium >/dev/null && exit 0; \
	fi; \
	echo "There is no Chromium; tests in a browser are skipped (Debian: apt-get install chromium)."

# What touches every library, and takes some minutes.
LOWEST := tests/data tests/model tests/kernels tests/test_fits_of_terms.py tests/test_files.py \
	tests/estimators/test_contract.py tests/cli/test_models.py tests/output/test_plots.py \
	tests/output/test_report.py

# Only what pyproject.toml names is at its lower bound: what those libraries need in turn is new.
lowest:  ## tests with every library at its lower bound (in .venv-lowest)
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/python -m uv pip install --quiet --python .venv-lowest/bin/python \
		--resolution lowest-direct '.[test]'
	.venv-lowest/bin/python -m pytest -n auto --maxprocesses $(MAX_PROCESSES) --dist loadfile \
		--no-loadscope-reorder $(LOWEST)

package: $(VENV)/.ready-test  ## build what is published into dist/, check it and test the wheel
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m pip install --quiet --disable-pip-version-check twine
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m pytest -q tests/test_wheel.py

lint: $(VENV)/.ready-lint  ## ruff (lint and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.ready-bench  ## run every script of benchmarks/, one after another
	@set -e; for script in benchmarks/*.py; do \
		if [ ! -e "$$script" ]; then echo "There are no scripts in benchmarks/ yet."; exit 1; fi; \
		echo "== $$script"; $(BIN)/python "$$script"; \
	done

docs: $(VENV)/.ready-docs $(VENV)/.ready-test  ## build the pages of the documentation into site/, and check them
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	$(BIN)/python -m pytest -q tests/test_docs_site.py
	@echo "Open site/index.html."

clean:  ## remove .venv and everything that was built or cached
	rm -rf $(VENV) .venv-lowest build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "isplitlbi needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
			"Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# Commands start faster where the sources are compiled, and not everybody's Python may write that.
COMPILE = @$(BIN)/python -m compileall -q src

# One stamp per set of dependencies. A changed pyproject.toml makes them all out of date.
$(VENV)/.ready-core: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	$(COMPILE)
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(COMPILE)
	@touch $(foreach set,core report test lint bench dev,$(VENV)/.ready-$(set))

$(VENV)/.ready-%: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	$(COMPILE)
	@touch $(VENV)/.ready-core $@
