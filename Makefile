PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo test lint bench clean
install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: install
	$(BIN)/tautune run demo
	$(BIN)/tautune report demo
	@echo "browse the runs: $(BIN)/tautune ui"

test: install
	$(BIN)/pytest

lint: install
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

bench: install
	$(BIN)/python -m benchmarks.throughput

clean:
	rm -rf .venv .tautune build *.egg-info .pytest_cache .ruff_cache .mypy_cache
