# On a fresh machine: `make report`, `make check` before every commit, and `make test`. Needs make
# and Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# Tests are compiled when they are first run, not by each process of every run
unexport PYTHONDONTWRITEBYTECODE

.PHONY: generated report lint check test test-all fuzz bench mutation notebooks figures site book clean
.DEFAULT_GOAL := report

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bbb_numpy needs Python >= 3.11; this is %s. Try: make PYTHON=python3.11" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.base: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.base

$(VENV)/.dev: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.test $(VENV)/.base

$(VENV)/.bench: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP) --editable '.[bench]'
	@touch $@ $(VENV)/.base

$(VENV)/.site: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP) --editable '.[site]'
	@touch $@ $(VENV)/.base

report: $(VENV)/.base  ## train on the report's problem, print what happened, write the figures
	$(BIN)/bbb-numpy report

lint: $(VENV)/.test  ## lint, types, floors, and the statements that there may be
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/budgets.py

check: lint  ## before every commit: and the mathematics, the prover too if it or a part has changed
	HYPOTHESIS_PROFILE=check $(BIN)/python -m pytest $$($(BIN)/python tests/project/changed.py)

test: lint  ## and every test but the slow ones, with few examples
	HYPOTHESIS_PROFILE=check $(BIN)/python -m pytest --seconds

test-all: $(VENV)/.dev  ## every test, the slow ones too, with all examples
	$(BIN)/python -m pytest -m ""

fuzz: $(VENV)/.test  ## hostile calls and files, kills, Ctrl-Cs; FUZZ="--only calls --seed 7"
	$(BIN)/python -m benchmarks.fuzz $(FUZZ)
	$(BIN)/python -m benchmarks.interrupts $(INTERRUPTS)

bench: $(VENV)/.bench  ## time one training step against its floor and its peers
	$(BIN)/python benchmarks/step_time.py
	$(BIN)/python benchmarks/estimators.py
	$(BIN)/python benchmarks/samplers.py

mutation: $(VENV)/.test  ## grade the tests by changes planted in the code; hours, MUTATION="--share 0.1"
	$(BIN)/python benchmarks/mutation.py $(MUTATION)

notebooks: $(VENV)/.test  ## run the notebooks again and store their outputs
	$(BIN)/python notebooks/execute.py

figures: $(VENV)/.base  ## draw the figures of the derivations, the README's moving one and those of the slides again
	$(BIN)/python figures/derivations.py
	$(BIN)/python figures/slides.py

generated: $(VENV)/.test  ## signatures.txt, proofs.md and lists of parts, after adding a part or an equation
	$(BIN)/python tests/project/generated.py

site: $(VENV)/.site  ## the book, the notebooks, the reference and the slides as pages: build/site/html/index.html
	$(BIN)/python site/generate.py build/site/source
	$(BIN)/python -m sphinx -q -W --keep-going -b html -c site -d build/site/doctrees build/site/source build/site/html
	$(BIN)/python -m sphinx -q -W --keep-going -b revealjs -d build/slides/doctrees site/slides build/site/html/slides

book: $(VENV)/.site  ## the book as one PDF, build/book/bbb_numpy.pdf; prints with Chromium (apt install chromium)
	$(BIN)/python site/book/make.py build/book

clean:
	rm -rf $(VENV) build dist *.egg-info report reproduced .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
