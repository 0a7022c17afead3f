# Everything happens in .venv, made on first use; nothing is needed but make, Python 3.11 or newer with venv, and a package index.
# `make` alone lists the targets; `make PYTHON=/path/to/python3 ...` chooses the Python.

VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/core.stamp
DEV := $(VENV)/dev.stamp
TYPES := build/types/faultsweep
INSTALL := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -q
WARM := $(BIN)/faultsweep simulate --log sdsc-model --num-jobs 10 > /dev/null
# Workers of the test run, for two cores: often one or two of them wait, for SLURM or for a process that is killed.
JOBS := 4
CORES := 2
# Tests of the compiled code that run again without the compiler (for coverage) and with bounds checks.
LANE := tests/simcore $(wildcard tests/test_examples_*.py)
REFERENCE := $(wildcard tests/test_*_against_reference.py)
# Tests of what is compiled when, to which bounds checks make no difference.
CACHE := tests/simcore/test_jit.py
LANE_NOT := not shared and not slow and not slurm and not chromium
# Runs of `make fuzz` at the bounds of parameters; python -m tests.fuzz_bounds --first N --runs M makes a part of them.
RUNS := 100000
# Papers whose figures `make reproduce` draws.
PAPERS := krevat2003 oliner2004 zhang2004 tang2010 akshitha2011

# Python keeps what it has compiled, whatever the environment says: tests start hundreds of processes, and each would
# compile all sources again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test test-rest test-nojit test-bounds test-slurm test-slow warm warm-bounds lint tree docs check bench against-slurm fuzz mutants reproduce clean

help: ## list what make can do
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

$(BIN)/python:
	@old=; for python in $(or $(PYTHON),python3.11 python3.12 python3.13 python3.14 python3 python); do \
	  command -v $$python > /dev/null 2>&1 || continue; \
	  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || { old="$$old $$python"; continue; }; \
	  $$python -c 'import ensurepip, venv' 2> /dev/null || { bare=$$python; continue; }; \
	  echo "Making $(VENV) with $$($$python --version)."; exec $$python -m venv $(VENV); \
	done; \
	if [ -n "$$bare" ]; then echo "$$bare cannot make virtual environments: install its venv module (Debian, Ubuntu: apt-get install python3-venv)." >&2; \
	elif [ -n "$$old" ]; then echo "Python 3.11 or newer is needed, and$$old is older: install one, or name it with make PYTHON=/path/to/python3." >&2; \
	else echo "No Python was found: install Python 3.11 or newer, or name it with make PYTHON=/path/to/python3." >&2; fi; exit 1

$(CORE): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing into $(VENV) (about a minute)."
	@$(INSTALL) --editable '.[plot]' && touch $@

$(DEV): $(CORE)
	@echo "Installing what the tests need."
	@$(INSTALL) --editable '.[docs,test]' && touch $@

install: $(CORE) ## install into .venv, with what draws figures; then .venv/bin/faultsweep runs

demo: $(CORE) ## run a sweep and draw its figure into demo/ (a few minutes, no network but the package index)
	@$(BIN)/faultsweep figure demo --store demo/demo.zarr --output demo
	@echo
	@echo "Look:    demo/demo.png, or demo/demo.html in a browser (it works offline)"
	@echo "Query:   $(BIN)/python -c \"import faultsweep as fs; print(fs.open_results('demo/demo.zarr'))\""
	@echo "Extend:  copy sweeps/experiments/demo.toml, add a load or a scheduler, then"
	@echo "         $(BIN)/faultsweep run my.toml --store demo/demo.zarr   (only what is new is run)"
	@echo "Learn:   README.md, docs/tutorial.md"

# Compiles the kernels once, before several processes would each do it.
warm: $(DEV)
	@$(WARM)

test: warm ## run the tests, a sample of them where many cases are alike; what needs SLURM, Chromium or the real logs is skipped without them
	@$(PYTEST) --numprocesses $(JOBS) --dist worksteal -m 'not slow and not rest'

test-rest: warm ## run the cases that make test leaves out, but those of the kernels, which test-bounds runs
	@$(PYTEST) --numprocesses $(JOBS) --dist worksteal -m 'rest and not slow' $(addprefix --ignore=,$(LANE) $(REFERENCE))

test-nojit: $(DEV)
	@echo "Without the compiler: the same kernels as plain Python, with the coverage of the simulator core."
	@NUMBA_DISABLE_JIT=1 $(PYTEST) --numprocesses $(CORES) --dist worksteal -m '$(LANE_NOT) and not compiled and not rest' --cov=faultsweep.simcore --cov-report=term --cov-fail-under=90 $(LANE)

warm-bounds: $(DEV)
	@NUMBA_BOUNDSCHECK=1 $(WARM) 2> /dev/null

test-bounds: warm-bounds
	@echo "Compiled with bounds checks."
	@NUMBA_BOUNDSCHECK=1 $(PYTEST) --numprocesses $(CORES) --dist worksteal -m '$(LANE_NOT) and not sample' --ignore=$(CACHE) $(LANE) $(REFERENCE)

test-slurm: warm
	@echo "What takes long on SLURM: real walltimes, jobs that control worker jobs."
	@$(PYTEST) --numprocesses $(JOBS) --dist worksteal -m 'slow and slurm'

test-slow: warm ## run the tests that take long: among them, every process of a sweep killed at thirty times
	@$(PYTEST) --numprocesses $(JOBS) --dist worksteal -m slow

lint: $(DEV) tree
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@MYPYPATH=build/types $(BIN)/mypy

# Type checker and docs do not see through the import hook of an editable install: a tree of links shows them the package.
tree:
	@mkdir -p $(TYPES) && for part in simcore sweeps cluster analysis $(filter-out %__pycache__,$(wildcard faultsweep/*)); do \
	  ln -sfn "$(CURDIR)/$$part" $(TYPES)/$$(basename $$part); done

docs: $(DEV) tree ## build the documents as a site into build/site; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

check: lint docs test test-rest test-nojit test-bounds ## style, types, documents, all tests but the slow ones, those of the kernels twice more: what must pass

bench: $(DEV) ## measure the speeds that the documents state
	@$(BIN)/python -m benchmarks

against-slurm: warm ## play traces of jobs on a real SLURM and compare its passes with ours (two hours; needs SLURM with its accounting, and root)
	@$(BIN)/python -m tests.cluster.recorded_slurm recorded
	@$(BIN)/python -m tests.cluster.recorded_preemption recorded/preempted.json
	@$(BIN)/python -m tests.cluster.recorded_features recorded/features
	@$(BIN)/python -m tests.cluster.recorded_associations recorded/rules/associations.json
	@$(BIN)/python -m tests.cluster.recorded_submits recorded/rules/submits.json

fuzz: warm ## compare engine and reference on thousands of random workloads; read 100,000 damaged dumps
	@FAULTSWEEP_FUZZ_DUMPS=100000 $(PYTEST) tests/simcore/workloads/test_accounting.py
	@FAULTSWEEP_FUZZ=3000 $(PYTEST) --numprocesses $(CORES) tests/test_*_against_reference.py tests/test_metamorphic.py tests/test_laws_of_time.py tests/simcore/test_node_choice.py
	@$(BIN)/python -m tests.fuzz_bounds --runs $(RUNS) --jobs $(CORES)

mutants: $(DEV) ## plant errors in the kernels and count how many the tests catch
	@$(BIN)/python -m tests.mutants

reproduce: $(CORE) ## run the papers, draw their figures and judge their claims into figures/ (LOGS=DIR: a folder of job logs)
	@for paper in $(PAPERS); do \
	  $(BIN)/faultsweep figure $$paper --store figures --output figures $(if $(LOGS),--logs $(LOGS)) || exit; done
	@$(BIN)/faultsweep reproduce --store figures $(if $(LOGS),--logs $(LOGS)) --page figures/reproduction.md

clean: ## remove all that make has made
	@rm -rf $(VENV) build demo figures recorded *.egg-info .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
