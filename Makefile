# Everything a person or CI needs; each target sets up what it lacks.
PYTHON ?= python3.11
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: setup matrix test lint format bench fidelity torture fuzz clean

setup: $(STAMP)

# pip resolves torch to a CUDA build on Linux, also where there is no GPU: the stub device needs it.
$(STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; name another with PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

matrix: setup
	$(BIN)/harness run matrix

# Several at once: many tests wait for processes. A file stays with one worker, since its tests share what they set up.
test: setup
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy harness experiments
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python -m tests.benchmarks
	$(BIN)/python -m tests.benchmarks.guard
	$(BIN)/python -m tests.benchmarks.timer

fidelity: setup
	$(BIN)/python -m tests.fidelity

# At least 200 kills; KILLS=1000 SEED=1 make torture for more.
torture: setup
	$(BIN)/python -m tests.torture --kills $(or $(KILLS),200) --seed $(or $(SEED),0)

# 3000 random programs, other ones each time; FUZZ=10000 make fuzz for more.
fuzz: setup
	HARNESS_FUZZ=$(or $(FUZZ),3000) $(BIN)/python -m pytest tests/contract/test_guard_fuzz.py -s

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
