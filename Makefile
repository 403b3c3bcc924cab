# What can be made of this repository. `make` alone lists it.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

# One set of features for everything that is built here, so that nothing is built twice and no test is left out.
BUILD := --workspace --all-features
TOOLS := target/tools/bin
# Where cargo builds.
BUILT := $(or $(CARGO_TARGET_DIR),target)
# The functions' programs. Each is deployed under the name that Lambda starts: target/lambda/<name>/bootstrap.
BOOTSTRAPS := fan-out sweep
DENY := 0.20.2
ADVISORIES := https://github.com/RustSec/advisory-db

# librdkafka's configure asks for a C++ compiler, and then builds only C. Where there is none, the C compiler answers for it.
ifeq ($(CXX)$(shell command -v c++ g++ clang++),g++)
export CXX := cc
endif

# $(call need,PROGRAM,WHAT FOR): a line if it is missing.
need = command -v $(1) >/dev/null || missing+=("$(1): $(2)")

# $(call need_file,FILE): an end with a word if it is not there.
need_file = [ -f $(1) ] || { echo '$(1) is missing: make bootstraps' >&2; exit 1; }

define need_build
	missing=(); \
	$(call need,cargo,a Rust toolchain; see https://rustup.rs); \
	if command -v rustc >/dev/null; then \
	  version=$$(rustc --version | cut -d ' ' -f 2); \
	  [ "$$(printf '%s\n' 1.95 "$$version" | sort -V | head -n 1)" = 1.95 ] \
	    || missing+=("rustc: 1.95 or newer; the one on PATH is $$version (rustup update)"); \
	fi; \
	for name in "$${CC:-}" gcc clang cc none; do command -v "$$name" >/dev/null && break; done; \
	[ "$$name" != none ] || missing+=("cc: a C compiler (Debian: apt-get install build-essential)"); \
	if ! command -v perl >/dev/null; then missing+=("perl: OpenSSL's build scripts (Debian: apt-get install perl)"); \
	elif ! perl -MFindBin -MIPC::Cmd -MFile::Compare -MFile::Copy -e 1 2>/dev/null; then \
	  missing+=("perl: the one on PATH lacks core modules (Fedora: dnf install perl-core)"); fi
endef

define say_missing
	if [ $${#missing[@]} -gt 0 ]; then \
	  echo 'This cannot be made here. Missing:' >&2; printf '  - %s\n' "$${missing[@]}" >&2; exit 1; \
	fi
endef

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

.PHONY: demo
demo: ## sweep a simulated instance, from nothing to rows; needs Rust, a C compiler, make and perl
	@$(need_build); $(say_missing)
	@cargo run --package tablesweep-cli -- demo

.PHONY: test
test: ## every test, against real parts that are fetched and started as needed
	@$(need_build); \
	$(call need,java,17 or newer runs Apache Kafka (Debian: apt-get install default-jdk-headless)); \
	$(call need,javac,compiles what reads records back (Debian: apt-get install default-jdk-headless)); \
	$(call need,mvn,fetches Apache Kafka (Debian: apt-get install maven)); \
	$(call need,python3,3.10 or newer with venv runs moto (Debian: apt-get install python3-venv)); \
	$(call need,patch,breaks the protocol for the model (Debian: apt-get install patch)); \
	$(call need,tsql,FreeTDS asks the TDS test server (Debian: apt-get install freetds-bin)); \
	$(call need,git,a page clones with it (Debian: apt-get install git)); \
	$(call need,curl,a page asks with it (Debian: apt-get install curl)); \
	$(call need,openssl,a page looks at certificates with it (Debian: apt-get install openssl)); \
	$(say_missing)
	@tests/testbed/parts/fetch.sh
	@.ci/template test
	@# The tests start the programs, and cargo builds only those of the package that a test is in.
	@cargo build $(BUILD) --bins
	@# What the programs say in the tests is kept, and searched for the tests' secrets when they are over.
	@rm -rf "$(BUILT)/said"
	@cargo test $(BUILD) --no-fail-fast
	@.ci/said "$(BUILT)/said"
	@tests/model/mutations.sh ack-before-commit

.PHONY: model
model: ## the protocol under a model checker, the long run
	@$(need_build); $(say_missing)
	@cargo run --package tablesweep-model -- long

.PHONY: mutations
mutations: ## breaks the protocol, one promise at a time; the model has to notice each
	@$(need_build); \
	$(call need,patch,applies the mutations (Debian: apt-get install patch)); \
	$(say_missing)
	@tests/model/mutations.sh

.PHONY: bench
bench: bootstraps ## a backfill against the least it could cost, idle sweeps, memory; OPTIONS="--rows 100000" and others (see docs/benchmark.md)
	@$(need_build); \
	$(call need,java,17 or newer runs Apache Kafka (Debian: apt-get install default-jdk-headless)); \
	$(call need,javac,compiles what reads records back (Debian: apt-get install default-jdk-headless)); \
	$(call need,mvn,fetches Apache Kafka (Debian: apt-get install maven)); \
	$(call need,python3,3.10 or newer with venv runs moto (Debian: apt-get install python3-venv)); \
	$(say_missing)
	@tests/testbed/parts/fetch.sh
	@# Without --workspace: the failpoints of the tests must not be in what is measured.
	@cargo run --release --package tablesweep-bench -- $(OPTIONS)

.PHONY: histories
histories: ## ten thousand generated histories of the ServiceNow sweep, others each time
	@$(need_build); $(say_missing)
	@HISTORIES=$${HISTORIES:-10000} HISTORIES_FROM=$${HISTORIES_FROM:-$$(date +%s)000000} \
	  cargo test --package tablesweep-histories generated -- --nocapture

.PHONY: lint
lint: fmt clippy deny ## formatting, clippy with warnings denied, licences and dependencies

.PHONY: fmt
fmt: ## is everything formatted?
	@cargo fmt --all --check

.PHONY: clippy
clippy: ## clippy, warnings denied
	@$(need_build); $(say_missing)
	@cargo clippy $(BUILD) --all-targets -- -D warnings

# Advisories come from a database in a git repository. Where that is out of reach, everything else is still checked.
.PHONY: deny
deny: $(TOOLS)/cargo-deny-$(DENY) ## licences, banned and doubled crates, where crates come from, advisories
	@$< check bans licenses sources
	@limit=$$(command -v timeout || true); \
	if GIT_TERMINAL_PROMPT=0 $${limit:+timeout 30} git ls-remote --exit-code $(ADVISORIES) HEAD >/dev/null 2>&1; then \
	  $< check advisories; \
	else \
	  echo 'advisories NOT CHECKED: $(ADVISORIES) cannot be reached from here'; \
	fi

# Without optimisation it is built in a third of the time, and the check takes two seconds either way.
$(TOOLS)/cargo-deny-$(DENY):
	@echo 'building cargo-deny $(DENY) into $(TOOLS)'
	@CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 cargo install cargo-deny --version $(DENY) --locked --no-default-features \
	  --debug --quiet --force --root target/tools --target-dir target/tools/build
	@rm -rf target/tools/build
	@mv $(TOOLS)/cargo-deny $@

.PHONY: template-lint
template-lint: ## cfn-lint and sam validate on template.yaml; needs Python 3.10
	@.ci/template lint

# Built by themselves: together with the tests they would get the tests' failpoints. Both share every crate, so that the
# second costs one more link. A program is checked before it is staged, and replaced by a move, since one may be running.
.PHONY: bootstraps
bootstraps: ## release builds of the functions, checked for provided.al2023, in target/lambda
	@$(need_build); \
	$(call need,objdump,reads what a program needs (Debian: apt-get install binutils)); \
	$(call need,python3,packs a program to see its size); \
	$(say_missing)
	@cargo build --release --locked $(BOOTSTRAPS:%=--package %)
	@.ci/check-bootstrap $(BOOTSTRAPS:%=$(BUILT)/release/%)
	@for name in $(BOOTSTRAPS); do \
	  mkdir -p "target/lambda/$$name"; \
	  cp "$(BUILT)/release/$$name" "target/lambda/.$$name"; \
	  mv "target/lambda/.$$name" "target/lambda/$$name/bootstrap"; \
	  echo "target/lambda/$$name/bootstrap"; \
	done

# `make bootstraps` comes first by hand: whoever releases has tested those programs, and wants them packed, not others.
.PHONY: archives
archives: ## what is deployed, in one zip with its checksum, in target/archives
	@$(call need_file,target/lambda/fan-out/bootstrap); $(call need_file,target/lambda/sweep/bootstrap)
	@.ci/archives "$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)" "$$(uname -m | sed s/aarch64/arm64/)"

.PHONY: layer
layer: ## stage config/ as target/layer/config, the content of the functions' layer
	@rm -rf target/layer
	@mkdir -p target/layer
	@cp -R config target/layer/config
	@echo 'target/layer/config'

.PHONY: reference
reference: ## write docs/configuration.md from the key definitions
	@mkdir -p target
	@cargo run --quiet --package tablesweep-cli -- reference >target/configuration.md
	@mv target/configuration.md docs/configuration.md
	@echo 'docs/configuration.md'
