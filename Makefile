# `make demo` shows what pickytok does, `make test` runs everything that CI checks; both do all set-up.
# Needed: Python >= 3.10 and a Rust toolchain.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
N      ?= 200000
BENCH  ?=

# A virtual environment and a conda environment at once would be an error to maturin.
unexport CONDA_PREFIX
export VIRTUAL_ENV := $(abspath $(VENV))
export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

CORE := Cargo.toml pyproject.toml $(wildcard Cargo.lock) $(shell find src -name '*.rs')

.PHONY: help dev fmt lint test rust-test valgrind bench demo docs wheel fuzz clean

help:
	@echo "make dev     virtual environment with an editable, optimised build and all tools"
	@echo "make demo    train on Python's own library and show what Picky BPE does"
	@echo "make test    everything that CI checks"
	@echo "make fmt     format all sources"
	@echo "make lint    check format, lints, types and stubs"
	@echo "make docs    renew what is generated in docs/ and run every example"
	@echo "make valgrind  the tests of unsafe code under valgrind, which must be installed"
	@echo "make fuzz    compare with the oracle on N=$(N) random corpora"
	@echo "make bench   time against other tokenizers; BENCH='--corpus FILE... --growth --hard'"
	@echo "make wheel   wheel and sdist in dist/, tried in a fresh environment"
	@echo "make clean   remove all that was built"

dev: $(VENV)/.built

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install 'maturin>=1.9.4,<2'
	touch $@

$(VENV)/.built: $(VENV)/.created $(CORE)
	$(BIN)/maturin develop --release --extras dev
	touch $@

fmt: dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	cargo fmt

lint: dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	cargo fmt --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest pickytok._core
	cargo clippy --quiet --all-targets -- -D warnings
	cargo clippy --quiet --all-targets --no-default-features -- -D warnings

rust-test: $(VENV)/.created
	cargo build --quiet --no-default-features
	cargo test --quiet --no-default-features

test: lint rust-test
	$(BIN)/pytest

# The few lines of unsafe code, with debug assertions, under a checker of every memory access.
valgrind:
	cargo test --quiet --no-default-features --lib \
		--config 'target."cfg(all())".runner = "valgrind --quiet --error-exitcode=9"' \
		-- chunk short_word pretokenize::tests::examples counts::tests

demo: dev
	$(BIN)/pickytok demo

# The test of the help file renews it and fails once; the second run shows that it is right.
docs: dev
	$(BIN)/pytest tests/test_cli.py -k help_file || $(BIN)/pytest tests/test_cli.py -k help_file
	$(BIN)/pytest tests/test_docs.py

fuzz: dev
	PICKYTOK_FUZZ=$(N) $(BIN)/pytest --timeout 0 -s tests/test_properties.py

$(VENV)/.bench: $(VENV)/.built
	$(BIN)/maturin develop --release --extras dev,bench
	touch $@

bench: $(VENV)/.bench
	$(BIN)/python benches/compare.py $(BENCH)

wheel: $(VENV)/.created
	rm -rf dist target/wheel-test
	$(BIN)/maturin build --quiet --release --sdist --out dist
	$(PYTHON) -m venv target/wheel-test
	target/wheel-test/bin/python -m pip install dist/*.whl
	target/wheel-test/bin/pickytok --version
	target/wheel-test/bin/pickytok demo --vocab-size 1024 --out target/wheel-test/demo

clean:
	rm -rf $(VENV) target dist demo python/pickytok/_core*.so
	find . -name __pycache__ -o -name .mypy_cache -o -name .ruff_cache -o -name .pytest_cache | xargs rm -rf
