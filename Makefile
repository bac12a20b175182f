# Two commands matter: `make run` and `make test`. `make help` lists the others.

CARGO ?= cargo
STEP := ./tools/step
PAGE := web/dist/index.html
SDK := crates/grove/tests/sdk
ACP_CLIENTS := crates/grove/tests/acp-clients
BUILT = $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),$(CURDIR)/target)

.PHONY: help run dist advisories check test model-test setup setup-test web types limits fmt fuzz test-sdk test-built-sdk test-sdks test-acp test-built-acp test-pi test-copilot test-agents test-checks soak bench-hostile bench-fanout bench-reduce bench-log bench-tree bench-agents bench-sessionfs bench-sessions bench-policy bench-history bench-page

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Install what is missing, build Grove with its page and start it
	@$(STEP) setup ./tools/setup build
	@$(STEP) page  $(MAKE) --no-print-directory $(PAGE)
	@$(STEP) grove $(CARGO) build --profile quick -p grove
	@$(CARGO) run --profile quick --quiet -p grove -- serve

dist: ## Build the optimised, stripped binary, and its list of components (SBOM)
	@$(STEP) setup ./tools/setup build
	@$(STEP) page  $(MAKE) --no-print-directory $(PAGE)
	@$(STEP) grove $(CARGO) build --profile dist -p grove --locked
	@$(STEP) sbom  ./tools/sbom "$(BUILT)/dist/grove.cdx.json"
	@ls -l "$(BUILT)/dist/grove" "$(BUILT)/dist/grove.cdx.json"

advisories: ## Check dependencies for known vulnerabilities (needs cargo-deny, and a network to its database)
	$(CARGO) deny --locked check advisories

check: ## For daily work: format, language, lints, and unit tests of the crates that changed since the upstream branch
	@$(STEP) format   $(CARGO) fmt --all --check
	@$(STEP) language ./tools/language
	@$(STEP) clippy   $(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@$(STEP) tests    ./tools/test-crates changed $(BASE)

# Clippy lints the crates while their tests are compiled, so that they are compiled once. `cargo clippy` sets the same variables.
# With the same variables, `make test-agents` compiles nothing again.
test test-agents: export RUSTC_WORKSPACE_WRAPPER = clippy-driver
test test-agents: export CLIPPY_ARGS = -Dwarnings__CLIPPY_HACKERY__
test test-agents: export CARGO_INCREMENTAL = 0
test test-agents: export CARGO_PROFILE_DEV_DEBUG = none
test: setup-test ## Everything that must hold: format, language, lints, dependencies, tests, documentation, the page in a browser
	@$(STEP) format   $(CARGO) fmt --all --check
	@$(STEP) dependencies ./tools/dependencies
	@$(STEP) sbom     ./tools/sbom --check
	@$(STEP) language ./tools/language
	@$(STEP) page     $(MAKE) --no-print-directory $(PAGE)
	@$(STEP) check    npm --prefix web run --silent check
	@$(STEP) unit     npm --prefix web test --silent
	@$(STEP) compile  $(CARGO) test --workspace --all-targets --locked --no-run
	@$(STEP) tests    ./tools/test-crates all
	@$(STEP) examples $(CARGO) test --workspace --doc --locked
	@$(STEP) sdk      $(MAKE) --no-print-directory test-built-sdk
	@$(STEP) acp      $(MAKE) --no-print-directory test-built-acp
	@$(STEP) browser  env GROVE_BIN="$(BUILT)/debug/grove" npm --prefix web run --silent e2e
	@$(STEP) docs     env -u RUSTC_WORKSPACE_WRAPPER RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --exclude 'grove-bench-*' --no-deps --locked

setup: ## Install what building needs and the machine lacks
	@./tools/setup build

setup-test: ## The same for testing
	@./tools/setup build test

web: $(PAGE) ## Build the page (needs node and npm)

$(PAGE): web/node_modules/.package-lock.json $(shell find web/src web/index.html web/*.ts web/*.js -type f 2>/dev/null)
	cd web && npm run --silent build

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --no-audit --no-fund --loglevel=error

types: ## Write the page's types again from the host's
	GROVE_TYPES_WRITE=1 $(CARGO) test -p grove-wire --test it --locked the_types_of_the_page

limits: ## Write docs/limits.md again from the code
	GROVE_LIMITS_WRITE=1 $(CARGO) test -p grove-limits --lib --locked the_page_of_limits

fmt: ## Format the code
	$(CARGO) fmt --all
	cd web && npm run --silent format

fuzz: ## Fuzz every parser for a minute each (needs a nightly toolchain and cargo-fuzz)
	./tools/fuzz 60

TIME ?= 3600
model-test: ## Try random operations on a real host against a simple model, for TIME seconds [3600]
	GROVE_MODEL_SECONDS=$(TIME) $(CARGO) test -p grove --test model --locked -- --nocapture

test-sdk: ## Run the GitHub Copilot SDK, unmodified, with Grove as its server (needs node and npm)
	$(CARGO) build -p grove
	$(MAKE) --no-print-directory test-built-sdk

test-built-sdk: $(SDK)/node_modules/.package-lock.json
	GROVE_BIN="$(BUILT)/debug/grove" timeout --kill-after=5 600 npm --prefix $(SDK) test --silent

# The SDK's own CLI is no part of it, and nothing of the SDK is compiled.
$(SDK)/node_modules/.package-lock.json: $(SDK)/package-lock.json
	cd $(SDK) && npm ci --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error

test-sdks: ## Run the SDKs of Python and Rust with Grove as their server (needs python3 3.11; at most 10 minutes)
	$(CARGO) build -p grove
	GROVE_BIN="$(BUILT)/debug/grove" timeout --kill-after=5 600 ./tools/test-sdks

test-acp: ## Run ACP clients of others with Grove as their agent (needs node and npm)
	$(CARGO) build -p grove
	$(MAKE) --no-print-directory test-built-acp

test-built-acp: $(ACP_CLIENTS)/node_modules/.package-lock.json
	GROVE_BIN="$(BUILT)/debug/grove" timeout --kill-after=5 300 npm --prefix $(ACP_CLIENTS) test --silent

$(ACP_CLIENTS)/node_modules/.package-lock.json: $(ACP_CLIENTS)/package-lock.json
	cd $(ACP_CLIENTS) && npm ci --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error

test-pi: ## Open Grove's logs with the real pi, and pi's with Grove (needs node and npm; at most 10 minutes)
	$(CARGO) build -p grove
	timeout --kill-after=5 600 ./tools/test-pi

test-agents: ## Run nine real agents behind Grove, offline, and print what works; read what some of them store (needs python3, node and npm; at most 15 minutes)
	timeout --kill-after=30 900 ./tools/test-agents

test-checks: ## Prove that each security check is needed: without it, its test must fail (about 5 minutes)
	./tools/test-checks

test-copilot: ## Run the real Copilot CLI as a client, offline (needs node, npm, python3 and tmux; at most 5 minutes)
	$(CARGO) build -p grove
	timeout --kill-after=5 300 ./tools/test-copilot

bench-hostile: ## Measure what good clients notice of hostile ones, beside a decoy (about 7 minutes)
	$(CARGO) build --release -p grove
	$(CARGO) run --release -p grove-bench-hostile

soak: TIME = 1800
soak: ## Measure whether a host grows with reconnecting clients and short sessions, for TIME seconds [1800]
	$(CARGO) build --release -p grove
	$(CARGO) run --release -p grove-bench-hostile -- soak --seconds $(TIME)

bench-fanout: ## Measure how one session reaches many subscribers (with peers; about 8 minutes)
	$(CARGO) build --release -p grove
	$(CARGO) run --release -p grove-bench-fanout -- --peers

bench-reduce: ## Count the instructions of a delta in short and long chats (needs valgrind)
	$(CARGO) run --release -p grove-bench-reduce

bench-log: ## Measure how logs are opened and appended to, beside pi and oh-my-pi (needs npm; about 3 minutes)
	$(CARGO) run --release -p grove-bench-log

bench-tree: ## Measure how trees are walked and sessions branched off, beside pi and oh-my-pi (needs npm; about 2 minutes)
	$(CARGO) run --release -p grove-bench-tree

bench-agents: ## Measure how the streams of 50 agents reach 5 clients (about 4 minutes)
	$(CARGO) build --release -p grove -p grove-testkit --bins
	$(CARGO) run --release -p grove-bench-agents

bench-sessionfs: ## Measure what the Copilot SDK waits for, beside the real Copilot CLI (needs node and npm; about 3 minutes)
	$(CARGO) build --release -p grove
	$(CARGO) run --release -p grove-bench-sessionfs

bench-sessions: ## Measure how 10,000 sessions of five providers are listed and followed, over loopback (about 1 minute)
	$(CARGO) run --release -p grove-bench-sessions

bench-policy: ## Measure how 10,000 answered permission requests are judged by rules
	$(CARGO) build --release -p grove
	$(CARGO) run --release -p grove-bench-policy

bench-history: ## Measure how other tools' sessions are found and listed, beside agentsview and ccusage (needs python3, npm; about 6 minutes)
	$(CARGO) run --release -p grove-bench-history

bench-page: $(PAGE) ## Measure the page in a browser, beside opencode's (needs node, npm and chromium; about 4 minutes)
	$(CARGO) build --release -p grove
	node bench/page/measure.mjs --peers
