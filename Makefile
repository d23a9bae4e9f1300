# The two commands a newcomer types: `make demo` and `make test`. Each installs what it needs into .venv first.
.PHONY: demo test docs reproduce-smoke check lint types layers test-python test-core test-sanitize format clean

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PYTHON ?= python3
CORE_SOURCES := $(shell find core -name '*.cpp' -o -name '*.h')
CMAKE = PATH="$(CURDIR)/$(BIN):$$PATH" cmake

demo: $(INSTALLED)
	@$(BIN)/sphynx demo

test: lint types layers test-core test-python

# Every experiment of the paper on tiny networks: proves the path, not the claims. Not part of `test`.
reproduce-smoke: $(INSTALLED)
	$(BIN)/sphynx reproduce all --scale smoke --out out/reproduce-smoke

# Pages made from the program itself: all verbs and options, the paper beside ours. Tests hold them equal.
docs: $(INSTALLED)
	$(BIN)/python docs/make_reference.py > docs/reference.md.new
	mv docs/reference.md.new docs/reference.md
	$(BIN)/python docs/make_paper_results.py > docs/results/paper.md.new
	mv docs/results/paper.md.new docs/results/paper.md

$(INSTALLED): pyproject.toml models/pyproject.toml constraints.txt CMakeLists.txt $(CORE_SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[design,dev]' -e ./models
	touch $@

lint: $(INSTALLED)
	$(BIN)/ruff format --check src tests examples benchmarks docs/*.py
	$(BIN)/ruff check src tests examples benchmarks docs/*.py
	$(BIN)/clang-format --dry-run --Werror $(CORE_SOURCES)

types: $(INSTALLED)
	$(BIN)/mypy

layers: $(INSTALLED)
	PYTHONPATH=src $(BIN)/lint-imports --no-cache

test-python: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal --durations=8

test-core: $(INSTALLED)
	$(CMAKE) -S . -B build/core -G Ninja -DSPHYNX_PYTHON=OFF -DSPHYNX_WERROR=ON
	$(CMAKE) --build build/core
	PATH="$(CURDIR)/$(BIN):$$PATH" ctest --test-dir build/core --output-on-failure

test-sanitize: $(INSTALLED)
	$(CMAKE) -S . -B build/sanitize -G Ninja -DSPHYNX_PYTHON=OFF -DSPHYNX_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo
	$(CMAKE) --build build/sanitize
	PATH="$(CURDIR)/$(BIN):$$PATH" ctest --test-dir build/sanitize --output-on-failure

format: $(INSTALLED)
	$(BIN)/ruff check --fix src tests examples benchmarks docs/*.py
	$(BIN)/ruff format src tests examples benchmarks docs/*.py
	$(BIN)/clang-format -i $(CORE_SOURCES)

clean:
	rm -rf build dist out $(VENV)
