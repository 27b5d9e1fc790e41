# Everything here does its own set-up. `make help` lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help

GO         ?= go
BIN        := bin
CACHE      := .cache
LABFLAGS   ?=
RUN        ?=
TESTFLAGS  ?=
BENCH      ?= .
SOAK_SCALE ?= 20

CONFORMANCE ?= write

# A regular expression may have what the shell would take for its own.
override TESTFLAGS := $(if $(RUN),-run '$(RUN)') $(TESTFLAGS)

# The modules that pin programs may need a newer Go than the SDK does; the go
# command fetches it.
NEWGO := GOTOOLCHAIN=auto $(GO)

NESTED := $(wildcard internal/*/go.mod internal/*/*/go.mod)

# A clone that root builds for another owner has no readable version stamp.
export GOFLAGS ?= -buildvcs=false

.PHONY: help
help: ## List the targets.
	@sed -n 's/^\([a-z0-9]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

.PHONY: setup
setup: ## Install what the lab and the tests need (Debian, root).
	@scripts/setup.sh

.PHONY: setup-test
setup-test: # for others than root some tiers skip their tests
	@if [ "$$(id -u)" = 0 ]; then scripts/setup.sh test e2e guest; else scripts/setup.sh; fi

.PHONY: setup-soak
setup-soak: setup-test # more kernels
	@if [ "$$(id -u)" = 0 ]; then $(GO) run ./internal/guest/cmd/fetch 6.18 newest; fi

.PHONY: setup-e2e
setup-e2e: # only root can run that tier
	@if [ "$$(id -u)" = 0 ]; then scripts/setup.sh e2e; else scripts/setup.sh; fi

.PHONY: build
build: setup ## Build every executable into bin/.
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -o $(BIN)/cnikit-bridge ./examples/bridge-vxlan/bridge
	CGO_ENABLED=0 $(GO) build -o $(BIN)/cnikit-ipam ./examples/bridge-vxlan/ipam
	CGO_ENABLED=0 $(GO) build -o $(BIN)/cnikit-agent ./examples/bridge-vxlan/agent
	CGO_ENABLED=0 $(GO) build -o $(BIN)/cnikit-lab ./examples/lab
	CGO_ENABLED=0 $(NEWGO) build -C internal/peers -o $(CURDIR)/$(BIN)/cnitool github.com/containernetworking/cni/cnitool

.PHONY: lab
lab: build ## Run the three-node cluster on this machine (root; LABFLAGS='-keep ...').
	$(BIN)/cnikit-lab -bin $(BIN) $(LABFLAGS)

.PHONY: test
test: setup-test ## Run every test, with the race detector (root; RUN=regexp for some).
	@GO=$(GO) scripts/test.sh $(TESTFLAGS)

.PHONY: e2e
e2e: setup-e2e ## Run the tests on a real Kubernetes (root; RUN='TestKubernetes/(nodes|pods)').
	@mkdir -p $(CACHE)
	$(GO) build -C internal/e2e -o $(CURDIR)/$(CACHE)/e2e-build ./cmd/build
	$(CACHE)/e2e-build
	$(GO) test -C internal/e2e -v -count=1 -timeout 20m $(TESTFLAGS) .

.PHONY: unit
unit: ## Run the tests that need no rights, without the race detector.
	$(GO) test -short $(TESTFLAGS) ./...

.PHONY: soak
soak: setup-soak ## Run every test at full size (SOAK_SCALE=20), and compare docs/conformance.md.
	CNIKIT_SCALE=$(SOAK_SCALE) CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 4h $(TESTFLAGS) ./...
	CNIKIT_SCALE=$(SOAK_SCALE) $(NEWGO) test -C internal/peers -v -count=1 -timeout 1h $(TESTFLAGS) .
	$(MAKE) conformance CONFORMANCE=check

.PHONY: conformance
conformance: setup ## Run the kit on the reference plugins and ours, write docs/conformance.md (root; CASES=regexp PLUGINS=regexp).
	CNIKIT_CONFORMANCE=$(CONFORMANCE) CNIKIT_CONFORMANCE_CASES='$(CASES)' $(GO) test -v -count=1 -timeout 1h -run '^TestConformance$$/^of$$/$(PLUGINS)' ./cni/cnitest

.PHONY: bench
bench: setup ## Run the benchmarks (BENCH=regexp).
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $(TESTFLAGS) ./...
	$(NEWGO) test -C internal/peers -run '^$$' -bench '$(BENCH)' -timeout 1h $(TESTFLAGS) .

.PHONY: fmt
fmt: linter ## Format the code and sort its imports.
	$(CACHE)/golangci-lint fmt

.PHONY: vet
vet: ## Run go vet.
	$(GO) vet ./...
	scripts/nested.sh vet

.PHONY: lint
lint: linter ## Run golangci-lint (built from internal/tools).
	$(CACHE)/golangci-lint run ./...
	cd internal/e2e && $(CURDIR)/$(CACHE)/golangci-lint run ./...
	cd internal/peers && $(CURDIR)/$(CACHE)/golangci-lint run ./...

.PHONY: linter
linter:
	@mkdir -p $(CACHE)
	@GOTOOLCHAIN=auto scripts/retry.sh $(GO) -C internal/tools mod download
	@CGO_ENABLED=0 $(NEWGO) build -C internal/tools -o $(CURDIR)/$(CACHE)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

CROSS := darwin/amd64 darwin/arm64 windows/amd64 linux/arm64

.PHONY: cross $(CROSS)
cross: $(CROSS) ## Build and vet, tests too, for darwin, windows and linux/arm64.
$(CROSS):
	CGO_ENABLED=0 GOOS=$(@D) GOARCH=$(@F) $(GO) build ./...
	CGO_ENABLED=0 GOOS=$(@D) GOARCH=$(@F) $(GO) vet ./...

.PHONY: tidy
tidy: ## Tidy go.mod and go.sum of every module.
	$(GO) mod tidy
	@set -e; for mod in $(NESTED); do $(NEWGO) -C $$(dirname $$mod) mod tidy; done

.PHONY: clean
clean: ## Remove what was built.
	rm -rf $(BIN) $(CACHE)
