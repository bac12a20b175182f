# Two commands matter: `make run` and `make test`. `make help` lists the others.

CARGO ?= cargo
STEP := ./tools/step

.PHONY: help run test setup fmt fuzz test-pi bench-fanout bench-reduce bench-log

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: setup ## Install what is missing, build Grove and start it
	$(CARGO) build --release -p grove
	@$(CARGO) run --release --quiet -p grove -- serve

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

test-pi: ## Open Grove's logs with the real pi, and pi's with Grove (needs node and npm; at most 10 minutes)
	$(CARGO) build -p grove
	timeout --kill-after=5 600 ./tools/test-pi

bench-fanout: ## Measure how one session reaches many subscribers (with peers; about 5 minutes)
	$(CARGO) build --release -p grove
	$(CARGO) run --release -p grove-bench-fanout -- --peers

bench-reduce: ## Count the instructions of a delta in short and long chats (needs valgrind)
	$(CARGO) run --release -p grove-bench-reduce

bench-log: ## Measure how logs are opened and appended to, beside pi and oh-my-pi (needs npm; about 3 minutes)
	$(CARGO) run --release -p grove-bench-log
