# The chores, one command each. `make` without a target lists them.

PREFIX ?= /usr/local
DESTDIR ?=

# The script in scripts/ that builds the command for `make install`.
BUILD ?= build-binary

# How long `make fuzz` runs each campaign, and its seed.
SECONDS ?= 120
SEED ?= $(shell date +%s)

.PHONY: help setup build guided demo test fuzz bench bench-tune accuracy install lock clean

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

setup: ## report what this machine lacks, and install it
	@scripts/setup

build: setup ## build the static command (build/wheel/scripts/schedlab) and the Python package (.venv)
	@scripts/build-binary
	@scripts/build-python

guided: setup ## build the static command guided by a profile of what it does: up to a fifth faster, after 15 minutes
	@scripts/build-guided

demo: ## build, record a real load, predict what other kernels and machines would do with it, write the reports
	@scripts/demo

test: ## install what the tests need, run all of them, and print a summary
	@scripts/setup --for-tests
	@scripts/test

fuzz: ## feed mutated files, arguments and loads to everything: SECONDS each (120), from the seed SEED (the time)
	SCHEDLAB_FUZZ_SECONDS=$(SECONDS) SCHEDLAB_FUZZ_SEED=$(SEED) cargo test --locked --test fuzz -- --nocapture
	PROPTEST_RNG_SEED=$(SEED) cargo test --locked -p schedlab-sched --test all properties

bench: setup ## run the benchmarks and print their figures
	@scripts/bench

bench-tune: setup ## hold searches to exhaustive and random search and to null studies, and write the figures (20 minutes)
	@scripts/build-python
	@.venv/bin/python scripts/bench_tune.py --write

accuracy: setup ## record nine loads, hold simulations of their models to the recordings, and write the table
	@scripts/build-binary
	@python3 scripts/accuracy.py --write $(ACCURACY)

install: setup ## install the static command into $(PREFIX)/bin (guided: BUILD=build-guided)
	@scripts/$(BUILD)
	install -D -m 755 build/wheel/scripts/schedlab "$(DESTDIR)$(PREFIX)/bin/schedlab"

lock: ## resolve the dependencies again, within the bounds of Cargo.toml and pyproject.toml
	@scripts/lock

clean: ## remove everything that was built, and the Python environment
	cargo clean
	rm -rf build .venv .cache
	find python scripts -name __pycache__ -type d -prune -exec rm -rf {} +
