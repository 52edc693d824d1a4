# Berthmaster. "make help" says what there is.

# The folder with etcd, kube-apiserver and kubectl. Set it to use your own;
# otherwise they are built from their modules into bin/k8s, once.
ifdef KUBEBUILDER_ASSETS
control-plane :=
else
KUBEBUILDER_ASSETS := $(CURDIR)/bin/k8s
control-plane := bin/k8s
endif
export KUBEBUILDER_ASSETS

# Packages whose tests start a kube-apiserver, and those whose tests do not.
# The stories of test/e2e run apart: they need the whole local system.
envtest_packages = $(sort $(dir $(shell grep -rl --include='*_test.go' 'controller-runtime/pkg/envtest"' api internal cmd 2>/dev/null)))
all_packages = $(shell go list -f '{{.Dir}}' ./... | sed 's|^$(CURDIR)/|./|; s|$$|/|')
unit_packages = $(filter-out $(addprefix ./,$(envtest_packages)) ./test/e2e/ ./test/e2e/cluster/,$(all_packages))

# How long each fuzz target runs; those that make whole calls run for SURFACETIME in make fuzz, and for
# SHORTTIME in make test.
FUZZTIME ?= 10s
SURFACETIME ?= 10m
SHORTTIME ?= 10s
# Folder and target of what takes whatever comes from the network.
surface = internal/router/server/FuzzCalls internal/router/server/FuzzWire internal/router/proxy/FuzzProxy
# An input that is interesting is made smaller for so long.
fuzz = go test ./$(1) -run '^$$' -fuzz "^$(2)$$" -fuzztime $(3) -fuzzminimizetime 5s

.DEFAULT_GOAL := help

##@ Use

.PHONY: help
help: ## Say what each target does.
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z][a-z0-9-]*:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Compile the programs into bin/, linked statically.
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

.PHONY: demo
demo: build $(control-plane) ## The main job on this machine: PLANT=replay, TRACE=path, LIMIT=n.
	go build -o bin/demo ./test/demo
	bin/demo -bin bin -assets "$(KUBEBUILDER_ASSETS)" \
	  $(if $(TRACE),-trace "$(TRACE)") $(if $(LIMIT),-limit "$(LIMIT)") $(if $(PLANT),-plant "$(PLANT)")

.PHONY: demo-rollout
demo-rollout: build $(control-plane) ## Three rollouts of weights under traffic, one of each strategy, with a timeline.
	go build -o bin/demo-rollout ./test/demorollout
	bin/demo-rollout -bin bin -assets "$(KUBEBUILDER_ASSETS)"

.PHONY: local
local: build $(control-plane) ## The system of the demo without its traffic, until Ctrl-C.
	go build -o bin/demo ./test/demo
	bin/demo -bin bin -assets "$(KUBEBUILDER_ASSETS)" -only system

.PHONY: cluster-up
cluster-up: cluster-images ## A real cluster of two nodes on this machine (needs root), until make cluster-down.
	@mkdir -p .cache && { setsid bin/cluster/sandbox up >.cache/cluster.log 2>&1 </dev/null & }
	@bin/cluster/sandbox await && echo "try: bin/cluster/sandbox exec kubectl get nodes"

.PHONY: cluster-down
cluster-down: ## End that cluster; nothing of it is left but its logs in .cache/cluster.
	bin/cluster/sandbox down

##@ Generated files

.PHONY: generate
generate: ## Write the deep copies of the API's types.
	go tool controller-gen object paths=./api/...

.PHONY: manifests
manifests: ## Write the resource definition, the manager's rights, and dist.
	go tool controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	go tool controller-gen rbac:roleName=manager-role paths=./internal/... output:rbac:artifacts:config=config/rbac
	$(MAKE) --no-print-directory dist

.PHONY: dist
dist: $(control-plane) ## Write dist/install.yaml and what the Helm chart has of config/.
	@$(call write-dist,dist,charts/berthmaster/files)

# The first folder gets the one file that installs everything, the second what the chart reads.
define write-dist
mkdir -p $(1) $(2) && \
"$(KUBEBUILDER_ASSETS)/kubectl" kustomize config/default > $(1)/install.yaml && \
"$(KUBEBUILDER_ASSETS)/kubectl" kustomize config/crd > $(2)/crd.yaml && \
"$(KUBEBUILDER_ASSETS)/kubectl" kustomize config/rbac > $(2)/rights.yaml && \
"$(KUBEBUILDER_ASSETS)/kubectl" kustomize config/rbac/namespaced > $(2)/rights-namespaced.yaml && \
"$(KUBEBUILDER_ASSETS)/kubectl" kustomize config/prometheus > $(2)/monitoring.yaml
endef

.PHONY: reference
reference: ## Write docs/reference from the code.
	go run ./internal/reference

.PHONY: licences
licences: ## Write the list of what the programs are built from.
	go run ./test/supply/licences

##@ Checks

# The tests against an API server mostly wait, so that the others run beside them. What both are
# compiled from comes first, or each would compile it. So do the stories and chaos, on systems of their own.
.PHONY: test
test: verify ## Everything that has to pass.
	go build -race ./api/... ./client/... ./cmd/... ./internal/...
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line test-envtest test-others
	@$(MAKE) --no-print-directory build $(control-plane)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line test-e2e test-chaos

# One after the other, in lines of their own, since goals of one make would run at once here.
.PHONY: test-others
test-others: ## Those that need no API server.
	@$(MAKE) --no-print-directory test-unit
	@$(MAKE) --no-print-directory test-charts
	@$(MAKE) --no-print-directory test-python
	@$(MAKE) --no-print-directory test-fuzz

.PHONY: verify
verify: verify-generated verify-reference verify-dist verify-licences verify-format vet lint verify-vulnerabilities verify-reproducible ## Generated code, licences, format, vet, lint, known vulnerabilities, reproducible builds.

.PHONY: verify-generated
verify-generated: ## Generated files are what their sources say.
	@rm -rf .cache/generated && mkdir -p .cache/generated/crd .cache/generated/rbac .cache/generated/object
	go tool controller-gen object paths=./api/... output:object:dir=.cache/generated/object
	go tool controller-gen crd paths=./api/... output:crd:artifacts:config=.cache/generated/crd
	go tool controller-gen rbac:roleName=manager-role paths=./internal/... output:rbac:artifacts:config=.cache/generated/rbac
	diff -u api/v1alpha1/zz_generated.deepcopy.go .cache/generated/object/zz_generated.deepcopy.go
	diff -ru .cache/generated/crd config/crd/bases
	diff -u config/rbac/role.yaml .cache/generated/rbac/role.yaml

.PHONY: verify-dist
verify-dist: $(control-plane) ## So are dist/ and the chart's copies.
	@rm -rf .cache/dist && $(call write-dist,.cache/dist/install,.cache/dist/chart)
	diff -u dist/install.yaml .cache/dist/install/install.yaml
	diff -ru charts/berthmaster/files .cache/dist/chart

.PHONY: verify-reference
verify-reference: ## docs/reference is what the code says.
	@rm -rf .cache/reference
	go run ./internal/reference -out .cache/reference
	diff -ru docs/reference .cache/reference

.PHONY: verify-licences
verify-licences: ## docs/licences.md lists what the programs are built from, all of it compatible.
	@mkdir -p .cache
	go run ./test/supply/licences -out .cache/licences.md
	diff -u docs/licences.md .cache/licences.md

.PHONY: verify-vulnerabilities
verify-vulnerabilities: ## No known vulnerability is reached; left out where the database cannot be had.
	@test/supply/vulnerabilities.sh

.PHONY: verify-reproducible
verify-reproducible: ## Two builds of the manager, in two folders, are the same.
	@test/supply/reproducible.sh

.PHONY: verify-format
verify-format: ## Every Go file is formatted.
	@found=$$(git ls-files --cached --others --exclude-standard '*.go' | xargs -r gofmt -l); \
	  test -z "$$found" || { echo "gofmt would change:"; echo "$$found"; exit 1; }

.PHONY: vet
vet: ## go vet, on every module.
	go vet ./...
	cd test/alerts && go vet .
	cd test/cluster && go vet ./build ./image ./images ./pause && go vet -tags live ./sandbox

.PHONY: lint
lint: bin/golangci-lint ## The house rules of .golangci.yml, import arrows included.
	bin/golangci-lint run

.PHONY: test-unit
test-unit: ## Unit and property tests, with the race detector.
	cd test/alerts && go test .
	cd test/cluster && go test ./build ./image ./images ./sandbox
	nice -n 5 go test -race -timeout 20m $(unit_packages)

.PHONY: test-envtest
test-envtest: $(control-plane) ## Tests against a real kube-apiserver.
	go test -race -timeout 20m $(addprefix ./,$(envtest_packages))

.PHONY: test-e2e
test-e2e: build $(control-plane) ## Users' stories, and both clients, on the local system.
	go test -count=1 -timeout 30m -v ./test/e2e -args -bin "$(CURDIR)/bin"

# The commits that the operator goes back to, and is upgraded from, for the stories about that: one that
# serves leases as now, and one with another resource definition.
EARLIER_SERVING = 1a36b73
EARLIER_DEFINITION = 83de28b

.PHONY: e2e
e2e: e2e-programs ## Users' stories on a real cluster (needs root): FOCUS=text for some.
	EARLIER_SERVING="$(CURDIR)/.cache/earlier/$(EARLIER_SERVING)" EARLIER_DEFINITION="$(CURDIR)/.cache/earlier/$(EARLIER_DEFINITION)" \
	  timeout -s KILL 45m bin/cluster/sandbox -state .cache/e2e-cluster up -- \
	  bin/cluster/e2e.test -root "$(CURDIR)" -test.timeout 44m -ginkgo.v -ginkgo.no-color $(if $(FOCUS),-ginkgo.focus "$(FOCUS)")
	bin/cluster/live.test -root "$(CURDIR)" -test.v -test.run UsedAndLeaves

# All that the stories need and that takes its time to build.
.PHONY: e2e-programs
e2e-programs: cluster-images .cache/earlier/$(EARLIER_SERVING)/install.yaml .cache/earlier/$(EARLIER_DEFINITION)/install.yaml
	CGO_ENABLED=0 go test -c -trimpath -o bin/cluster/e2e.test ./test/e2e/cluster
	cd test/charts && CGO_ENABLED=0 go build -trimpath -o ../../bin/cluster/ ./release
	cd test/cluster && CGO_ENABLED=0 go test -c -trimpath -tags live -o ../../bin/cluster/live.test ./sandbox

.PHONY: test-fuzz
test-fuzz: ## Whatever may come from the network, made up for SHORTTIME per target.
	@set -e; for target in $(surface); do \
	  echo "fuzz $$target for $(SHORTTIME)"; \
	  $(call fuzz,$$(dirname $$target),$$(basename $$target),$(SHORTTIME)); \
	done

.PHONY: test-charts
test-charts: ## The Helm chart, rendered by Helm's library.
	cd test/charts && go vet ./... && go test -count=1 ./...

.PHONY: test-chaos
test-chaos: ## Five rounds of chaos, and one manager without its API server.
	$(MAKE) --no-print-directory chaos ROUNDS=5

.PHONY: test-python
test-python: ## The Python client; needs python3 with venv, and is left out without.
	@if python3 -c 'import ensurepip, venv' 2>/dev/null; then clients/python/run-tests.sh; \
	  else echo "test-python: left out, since there is no python3 with venv (package python3-venv)"; fi

.PHONY: engine-conformance
engine-conformance: ## The claims about SGLang's API, against a server: URL=http://host:30000.
	@test -n "$(URL)" || { echo "engine-conformance: say which server, e.g. URL=http://127.0.0.1:30000"; exit 2; }
	go test ./internal/enginesim/conformance -run Conformance -count=1 -v -engine-url="$(URL)" $(CONFORMANCE)

##@ Measurements and long runs

.PHONY: bench
bench: build $(control-plane) ## Measure: one line each, "figure NAME VALUE UNIT".
	@set -e; for command in $(sort $(dir $(wildcard test/bench/*/main.go))); do go run ./$$command; done
	@bin/kubectl-berth simulate --workload all --output figures

.PHONY: bench-report
bench-report: build $(control-plane) ## Measure, and write the tables and plots of docs/performance.md; TRACE=path for one of a trace.
	@mkdir -p .cache
	$(MAKE) --no-print-directory bench > .cache/figures
	@cat .cache/figures
	go run ./internal/simulate/performance $(if $(TRACE),-trace "$(TRACE)") < .cache/figures

.PHONY: mutants
mutants: ## Plant faults in the router; fail if its tests miss one.
	go run ./test/mutants

.PHONY: soak
soak: ## A million leases under bad weather, then a list of abuses.
	go run ./test/soak
	go run ./test/soak -abuse

.PHONY: model
model: ## Every interleaving of two managers, two clients and two backends: some minutes, 2 GiB.
	go test -count=1 -timeout 60m -v ./test/model -run TestAllOfItTogether -whole

.PHONY: chaos
chaos: build $(control-plane) ## Managers killed, stopped and cut off under traffic, ROUNDS=100 times.
	go build -o bin/chaos ./test/chaos
	bin/chaos -bin bin -assets "$(KUBEBUILDER_ASSETS)" -alone
	bin/chaos -bin bin -assets "$(KUBEBUILDER_ASSETS)" -managers 3 -rounds 1
	bin/chaos -bin bin -assets "$(KUBEBUILDER_ASSETS)" -rounds "$(or $(ROUNDS),100)"
	bin/chaos -bin bin -assets "$(KUBEBUILDER_ASSETS)" -only "in a roll" -rounds 3

.PHONY: proxy-clients
proxy-clients: ## The official OpenAI packages for Python and Node, and curl, through the proxy.
	go run ./test/proxyclients

.PHONY: fuzz
fuzz: ## Every fuzz target, FUZZTIME each; those of the HTTP surface SURFACETIME.
	@set -e; grep -rno --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' api client clients cmd internal | \
	  sed 's|^\(.*\)/[^/]*:[0-9]*:func |\1 |' | while read -r folder target; do \
	    case " $(surface) " in *" $$folder/$$target "*) continue;; esac; \
	    echo "fuzz $$target in $$folder"; \
	    $(call fuzz,$$folder,$$target,$(FUZZTIME)); \
	  done
	@$(MAKE) --no-print-directory test-fuzz SHORTTIME=$(SURFACETIME)

##@ What the checks stand on

# The command decides by itself whether there is anything to build.
.PHONY: bin/k8s
bin/k8s:
	@cd test/cluster && go run ./build -out ../../bin/k8s

# The nodes of a real cluster: built from their modules into bin/cluster, once, by
# the same command. Only what needs such a cluster waits for them.
.PHONY: bin/cluster
bin/cluster: $(control-plane)
	@cd test/cluster && go run ./build -set nodes -out ../../bin/cluster
	@cd test/cluster && CGO_ENABLED=0 go build -trimpath -o ../../bin/cluster/ ./sandbox ./pause
	@for program in etcd kube-apiserver kubectl; do ln -sf "$(KUBEBUILDER_ASSETS)/$$program" bin/cluster/; done

.PHONY: cluster-images
cluster-images: build bin/cluster
	@cd test/cluster && go run ./images

# An earlier version's manifests, and its image beside those of now.
.cache/earlier/%/install.yaml:
	@rm -rf .cache/earlier/$* && mkdir -p .cache/earlier/$*/tree
	git archive $* | tar -x -C .cache/earlier/$*/tree
	cd .cache/earlier/$*/tree && CGO_ENABLED=0 go build -trimpath -o ../ ./cmd/manager
	cd test/cluster && go run ./images -only manager -programs "$(CURDIR)/.cache/earlier/$*" \
	  -manager docker.io/library/berthmaster:$* -out "$(CURDIR)/.cache/earlier/$*"
	"$(KUBEBUILDER_ASSETS)/kubectl" kustomize .cache/earlier/$*/tree/config/crd > .cache/earlier/$*/crd.yaml
	"$(KUBEBUILDER_ASSETS)/kubectl" kustomize .cache/earlier/$*/tree/config/default | \
	  sed 's|image: berthmaster:dev|image: berthmaster:$*|' > $@.unfinished
	rm -rf .cache/earlier/$*/tree
	mv $@.unfinished $@

bin/golangci-lint: tools/go.mod tools/go.sum
	@echo "tools: building golangci-lint from its module, once: two or three minutes on two cores"
	cd tools && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch bin/golangci-lint

.PHONY: clean
clean: ## Remove everything that was built.
	rm -rf bin .cache
