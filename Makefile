# make test                  lint and the suite, in .venv: under ten minutes on two cores
# make slow                  what that leaves out, as each of it takes seconds: under half an hour
# make test SLOW=1           both at once
# make test TRITON=3.6.0     the suite on another Triton, in .venv-3.6.0 (no torch there: every torch pins one Triton)
# make test SUBSET=1         leaves out what is slow, and what every Triton shows alike: under eight minutes
# make demo                  a kernel converted, compiled and simulated for two GPUs, and compared; needs no GPU
# make docs                  the documentation as a site, in build/site; needs no network to be read
# make bench                 the corpus on the GPU of this machine: Gluon against Triton
PYTHON ?= python3
DEFAULT_TRITON := $(patsubst triton==%,%,$(filter triton==%,$(shell cat constraints.txt)))
TRITON ?= $(DEFAULT_TRITON)
PYTEST_FLAGS ?= -n 2 --dist worksteal

ifeq ($(TRITON),$(DEFAULT_TRITON))
VENV := .venv
EXTRAS := gpu,dev
else
VENV := .venv-$(TRITON)
EXTRAS := dev
endif
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SELECT := $(if $(SUBSET),-m "subset or not (slow or once)",$(if $(SLOW),,-m "subset or not slow"))

# Python may have been told to keep no bytecode: then each of the many processes of the suite would compile it anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: all venv demo test slow pytest lint format docs bench clean
.DELETE_ON_ERROR:

all: test

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tt2gl needs Python 3.11 or newer (make PYTHON=...)")'
	$(PYTHON) -m venv $(VENV)
	sed 's/^triton==.*/triton==$(TRITON)/' constraints.txt > $(VENV)/constraints.txt
	$(BIN)/python -m pip install --quiet --constraint $(VENV)/constraints.txt --editable '.[$(EXTRAS)]'
	touch $@

# Lint once, with the default Triton: the others would check the same text.
test: $(if $(filter .venv,$(VENV)),$(if $(SUBSET),,lint)) pytest

pytest: $(STAMP)
	$(BIN)/python -m pytest $(PYTEST_FLAGS) $(SELECT)

# Those that run all the same (subset) have run by then.
slow: $(STAMP)
	$(BIN)/python -m pytest $(PYTEST_FLAGS) -m "slow and not subset" $(if $(BEGIN_WITHIN),-rs --begin-within=$(BEGIN_WITHIN))

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

DEMO := corpus/softmax.py
DEMO_LAUNCHES := --launches corpus/softmax.launches.json --root corpus

# A port is for one target: gfx942 has 64 lanes a warp where sm90 has 32. Without a port `verify` makes one to compare.
demo: $(STAMP)
	mkdir -p build/demo
	$(BIN)/tt2gl convert $(DEMO) $(DEMO_LAUNCHES) --target sm90 --diff
	$(BIN)/tt2gl convert $(DEMO) $(DEMO_LAUNCHES) --target sm90 -o build/demo/softmax_gluon.py
	$(BIN)/tt2gl verify $(DEMO) build/demo/softmax_gluon.py $(DEMO_LAUNCHES) --target sm90 --run simulate --seeds 1
	$(BIN)/tt2gl verify $(DEMO) $(DEMO_LAUNCHES) --target gfx942 --run simulate --seeds 1

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint $(VENV)/constraints.txt --editable '.[docs]'
	rm -rf build/pages build/site
	mkdir -p build/pages
	cp docs/*.md CONTRIBUTING.md build/pages
	sed 's#](docs/#](#g' README.md > build/pages/index.md
	$(BIN)/mkdocs build --quiet --strict

bench: $(STAMP)
	$(BIN)/python bench/run.py

clean:
	rm -rf .venv .venv-* build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
