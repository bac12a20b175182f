# Two commands matter: `make run` and `make test`. `make help` lists the others.

CARGO ?= cargo
STEP := ./tools/step

.PHONY: help run test setup fmt clippy tests docs licences fuzz bench-fanout bench-reduce

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: setup ## Install what is missing, build Grove and start it
	$(CARGO) run --release --quiet -p grove -- serve

test: setup ## Everything that must hold: format, lints, licences, tests, documentation
	@$(STEP) format   $(CARGO) fmt --all --check
	@$(STEP) licences ./tools/licences
	@$(STEP) clippy   $(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@$(STEP) tests    $(CARGO) test --workspace --all-targets --locked
	@$(STEP) examples $(CARGO) test --workspace --doc --locked
	@$(STEP) docs     env RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

setup: ## Install what building needs and the machine lacks
	@./tools/setup

fmt: ## Format the code
	$(CARGO) fmt --all

fuzz: ## Fuzz every parser for a minute each (needs a nightly toolchain and cargo-fuzz)
	./tools/fuzz 60

bench-fanout: ## Measure how one session reaches many subscribers (with peers; about 5 minutes)
	$(CARGO) build --release -p grove
	$(CARGO) run --release -p grove-bench-fanout -- --peers

bench-reduce: ## Count the instructions of a delta in short and long chats (needs valgrind)
	$(CARGO) run --release -p grove-bench-reduce
