# Two commands on a fresh machine: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TEST_JOBS ?= 2

.PHONY: demo test test-all fuzz mutants lint types contracts unit doctest docs docs-check bench clean

demo: $(VENV)/.demo
	$(BIN)/thirdmoment demo
	@if [ -t 1 ]; then $(BIN)/thirdmoment explore --demo; \
	else $(BIN)/thirdmoment explore --demo --export thirdmoment-demo.html; fi

test: lint types contracts unit doctest docs-check

test-all: test
	$(BIN)/python -m pytest -m slow

# Hostile input: N cases, each with 20 seconds and 1 GB.
N ?= 10000
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz $(N)

# Formulas changed on purpose: each must be noticed by its tests.
mutants: $(VENV)/.dev
	$(BIN)/python -m tests.mutants

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(TEST_JOBS)

doctest: $(VENV)/.dev
	$(BIN)/python -m pytest --doctest-modules --ignore-glob='*/_triton.py' --pyargs thirdmoment -q -p no:cacheprovider
	$(BIN)/python -m pytest --doctest-glob='*.md' docs README.md -q -p no:cacheprovider

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# The pages without the executed gallery, in seconds: broken references are errors.
docs-check: $(VENV)/.dev
	$(BIN)/sphinx-build -W --keep-going -q -D plot_gallery=0 -b html docs docs/_build/check

bench: $(VENV)/.dev
	for file in solvers synthetic_lda concentration large_k scaling real_text stability ablation gaussian categorical \
	  schur_claim covariances real_mixtures crowd hmm_synthetic hmm_long hmm_schur hmm_real \
	  kernel_synthetic kernel_scale kernel_real search_topics search_text search_labels search_halves search_pmi search_themes search_gaussian \
	  segmentation subspaces regression starts cells trust alarms small_fits texts texts_large readers named_topics batches scale scale_model gpu_work explorer constants; do \
	  $(BIN)/python benchmarks/$$file.py || exit 1; done

$(VENV)/.demo: requirements/demo.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/demo.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

clean:
	rm -rf $(VENV) docs/_build docs/gallery docs/api/generated .pytest_cache .mypy_cache .ruff_cache
