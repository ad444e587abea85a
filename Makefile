# Everything that a person or a machine does with this tree. Each target sets up what it needs.

# Whoever sets it has each of some thousand processes compile all that it imports: half of what a start takes.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
PYTHON_IN_VENV = $(VENV)/bin/python
# All that is compiled, however deep: C, what it includes, and the node's manager, of which mypyc compiles a part.
NATIVE = setup.py simgpu/setup.py $(wildcard cuda_hook/build_*.py) \
    $(shell find cuda_hook simgpu -name '*.[chS]' -o -name '*.def') $(shell find sharemgr/node -name '*.py')

# What is kept from one clone to the next.
CACHE = $(or $(EDGESHARE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/edgeshare)

GROUPS_OF_TEST = test-unit test-virtual test-parts test-cluster test-shares
GROUPS_OF_SOAK = soak-properties soak-virtual soak-sim soak-simgpu soak-memory soak-cluster

.PHONY: help setup build portable demo check lint test-quick test test-changed test-slowly soak $(GROUPS_OF_TEST) $(GROUPS_OF_SOAK)
.PHONY: gpu-test mutations format lock proto schema manifest docs bench bench-cluster cluster cluster-figures cluster-down wheel release clean
# Two groups at once would be more workers than there are processors: `test` says which may be beside others.
.NOTPARALLEL:

help:
	@echo "make demo          four programs share two simulated GPUs, for 30 seconds"
	@echo "make check         format, lint, types, import rules, unit tests, tests on a virtual clock (under 90 seconds)"
	@echo "make test          everything but the real-GPU tests, a real one-node Kubernetes included; its groups:"
	@echo "                   lint, test-unit, test-virtual, test-parts, test-shares, test-cluster"
	@echo "make test-changed  the tests of what was changed since BASE (origin/main)"
	@echo "make test-slowly   tests that are held up between two of their lines, which ones SEED says: for who writes tests"
	@echo "make soak          whole what make test runs in part, of what could go on without end: some hours"
	@echo "make mutations     which test sees it where the product is wrong: six changes of it, each in a copy of the tree; MUTATIONS: some"
	@echo "make gpu-test      on a machine with a GPU: its figures, into docs/guarantees/gpu-results.md"
	@echo "make bench         the figures, as JSON"
	@echo "make bench-cluster what the assigner costs the scheduler of 1,000 and of 5,000 nodes, as JSON; BENCH=--loopback:"
	@echo "                   with both in one pod, as the chart installs them"
	@echo "make cluster       a one-node Kubernetes with edgeshare on it; make cluster-down stops it"
	@echo "make cluster-figures  what edgeshare costs that cluster's node, and how soon it is back, as JSON"
	@echo "make build         the native parts, in place    make proto   the generated gRPC code"
	@echo "make portable      the hook for glibc 2.17 and later, x86-64 and aarch64, in build/portable"
	@echo "make manifest      the chart for kubectl, in dist/edgeshare.yaml    make schema   the chart's schema"
	@echo "make docs          a site of docs/, in build/site"
	@echo "make wheel         wheels in dist/          make format  the code's format"
	@echo "make release VERSION=0.2.0  what a release has, in dist/: chart, images for amd64 and arm64, manifest, checksums, bills of materials"
	@echo "make lock          requirements.txt and requirements-dev.txt by pyproject.toml; LOCK=--upgrade: of the newest versions"

# Stamps, so that a second call costs nothing. What only tests and tools need comes when they do: a compiler for other
# processors alone is 400 MB.
$(VENV)/.ready: pyproject.toml setup.py requirements.txt requirements-dev.txt tools/setup
	@tools/setup $(VENV)
	@touch $@

$(VENV)/.tools: $(VENV)/.ready
	@tools/setup $(VENV) dev
	@touch $@

setup: $(VENV)/.tools

$(VENV)/.built: $(VENV)/.ready $(NATIVE)
	@echo "building the native parts" >&2
	@$(PYTHON_IN_VENV) tools/built.py take . $(CACHE)/built
	@(cd simgpu && exec $(abspath $(PYTHON_IN_VENV)) setup.py -q build_ext --inplace) & simulated=$$!; \
	$(VENV)/bin/pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e . && wait $$simulated
	@$(PYTHON_IN_VENV) tools/built.py keep . $(CACHE)/built
	@touch -r build/.begun $@ # what was changed meanwhile is built the next time

build: $(VENV)/.built

# As a wheel has it, and for the other processor.
portable: setup
	@for processor in x86_64 aarch64; do \
	    $(PYTHON_IN_VENV) setup.py -q build_portable --target $$processor-linux-gnu.2.17 || exit 1; \
	done

demo: build
	@$(VENV)/bin/edgeshare demo

check: lint test-quick

# Ours: what cffi writes is not.
C_FILES = find bench cuda_hook simgpu tests -name '*.[ch]' ! -name '_core.c'

# What mypy found out of a module whose text is the same, it knows in any clone.
lint: export MYPY_CACHE_DIR ?= $(CACHE)/mypy
lint: setup
	$(VENV)/bin/ruff format --check -q .
	$(C_FILES) | xargs $(VENV)/bin/clang-format --dry-run -Werror
	$(VENV)/bin/ruff check -q .
	PATH="$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) proto/generate.py --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo

# What to run pytest by, for a group: it says which tests were the slowest, and leaves a report in build/junit.
pytest = $(PYTHON_IN_VENV) -m pytest -q --durations=15 --durations-min=1 --junit-xml=build/junit/$@.xml
# Two workers: tests/conftest.py says what may run beside what. Twice as many where tests wait for most of their time.
BESIDE = -n 2
BESIDE_WAITING = -n 4
SHARING = tests/demo tests/node tests/tpu

# Without what is marked `whole`: rows and random programs of which these are some.
test-quick: build setup
	$(pytest) $(BESIDE) -m "not whole" tests/unit tests/virtual

test-unit: build setup
	$(pytest) $(BESIDE) tests/unit

test-virtual: build setup
	$(pytest) $(BESIDE) tests/virtual

test-parts: build setup
	$(pytest) $(BESIDE_WAITING) -m "not measures" tests/hook tests/kubelet tests/labeller tests/model tests/sim tests/simgpu \
	    $(SHARING)

# Apart: what measures shares would see other work of the processors.
test-shares: build setup
	$(pytest) $(BESIDE) -m measures $(SHARING)

# One worker has what needs the node, and before that a browser; another what needs an API server or neither.
test-cluster: build setup
	$(pytest) $(BESIDE) tests/assigner tests/deploy tests/web tests/cluster

# All of them, whatever fails, and then a line for each. Those on the node are what a run waits for, as they wait for most
# of their time: they go before the others. Those on the virtual clock, which find the same however long they take, have
# what test-parts leaves, which waits, too; test-unit leaves nothing. What these two and lint say comes at their end. What
# measures is last, when nothing else runs.
test: setup
	@rm -f $(GROUPS_OF_TEST:%=build/junit/%.xml); mkdir -p build; failed=0; \
	trap 'kill $$lint $$cluster $$virtual 2>/dev/null' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; \
	nice -n 10 $(MAKE) --no-print-directory lint >build/lint.log 2>&1 & lint=$$!; \
	$(MAKE) --no-print-directory build || exit; \
	$(MAKE) --no-print-directory test-cluster >build/test-cluster.log 2>&1 & cluster=$$!; \
	echo "test-cluster runs beside the others, into build/test-cluster.log"; \
	nice -n 5 $(MAKE) --no-print-directory test-unit || failed=$$?; \
	nice -n 10 $(MAKE) --no-print-directory test-virtual >build/test-virtual.log 2>&1 & virtual=$$!; \
	echo "test-virtual runs beside what follows, into build/test-virtual.log"; \
	nice -n 5 $(MAKE) --no-print-directory test-parts || failed=$$?; \
	wait $$lint || failed=$$?; lint=; cat build/lint.log; \
	wait $$virtual || failed=$$?; virtual=; cat build/test-virtual.log; \
	wait $$cluster || failed=$$?; cluster=; cat build/test-cluster.log; \
	$(MAKE) --no-print-directory test-shares || failed=$$?; \
	$(PYTHON_IN_VENV) tools/summary.py $(GROUPS_OF_TEST) && exit $$failed

soak: build setup
	@rm -f $(GROUPS_OF_SOAK:%=build/junit/%.xml); $(MAKE) --no-print-directory --keep-going $(GROUPS_OF_SOAK); failed=$$?; \
	$(PYTHON_IN_VENV) tools/summary.py $(GROUPS_OF_SOAK) && exit $$failed

# All examples of each property, of which `make test` tries half.
soak-properties: build setup
	$(pytest) --soak $(BESIDE) tests/unit tests/labeller/test_gpu_labels.py tests/labeller/test_properties.py tests/assigner/http1 \
	    tests/assigner/http2

soak-virtual: build setup
	$(pytest) --soak $(BESIDE) tests/virtual/test_attacks.py tests/virtual/sharing/test_lies.py tests/virtual/test_explore.py tests/virtual/figures/test_figures.py tests/virtual/figures/test_mixes.py

soak-sim: build setup
	$(pytest) --soak $(BESIDE) tests/model tests/sim

soak-simgpu: build setup
	$(pytest) --soak $(BESIDE) tests/simgpu/test_engine.py

soak-memory: build setup
	$(pytest) --soak $(BESIDE_WAITING) tests/hook/memory/test_books_random.py

soak-cluster: build setup
	$(pytest) --soak tests/cluster

# As on a busy machine, but by chance and again the same (tests/kit/plugins/slowly.py): the daemons are held up, and then
# the tests. Twelve at a time: they sleep for most of it.
SEED ?= 1
slowly = $(pytest) -p tests.kit.plugins.slowly --slowly-seed $(SEED) -n 12 -m "not measures"
test-slowly: build setup
	$(slowly) --slowly-daemons --slowly-part 0.04 tests/kubelet tests/labeller $(SHARING)
	$(slowly) tests/hook tests/kubelet tests/labeller tests/model tests/sim tests/simgpu tests/web $(SHARING) tests/assigner \
	    tests/deploy tests/cluster

# Chosen by the import graph, and by a table where a test runs what it does not import: tools/changed.py says which and why.
BASE ?= origin/main
test-changed: build setup
	@chosen=$$($(PYTHON_IN_VENV) tools/changed.py $(BASE)) && \
	    { [ -z "$$chosen" ] || $(pytest) $(BESIDE) $$chosen; }

# Which they are, and which tests are asked: tools/mutations.py.
MUTATIONS ?=
mutations: build setup
	@$(PYTHON_IN_VENV) tools/mutations.py $(MUTATIONS)

# GPU_PYTHON: the Python that has PyTorch, JAX, CuPy and Numba, where there is one.
GPU_PYTHON ?= python3
gpu-test: build setup
	$(PYTHON_IN_VENV) -m pytest -q tests/gpu --record --python $(GPU_PYTHON)

bench: build setup
	@$(PYTHON_IN_VENV) -m bench

bench-cluster: build setup
	@$(PYTHON_IN_VENV) -m bench.cluster $(BENCH)

proto: setup
	PATH="$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) proto/generate.py

schema: build setup
	$(PYTHON_IN_VENV) deploy/render.py

# The Helm that the tests pin.
HELM = $(PYTHON_IN_VENV) -c 'from tests.kit.programs.binaries import HELM, program; print(program(HELM, "helm"))'
manifest: build setup
	$(PYTHON_IN_VENV) deploy/render.py --manifest dist/edgeshare.yaml --helm "$$($(HELM))"

docs: setup
	$(PYTHON_IN_VENV) -m sphinx -q -W --keep-going -d build/site-trees docs build/site

# --upgrade: to the newest versions; else those that are pinned stay where they still fit.
LOCK ?=
LOCKED = $(PYTHON_IN_VENV) -m uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
    $(LOCK) pyproject.toml
lock: setup
	@$(LOCKED) --extra dev --output-file requirements-dev.txt
	@$(LOCKED) --extra build --extra cluster --constraints requirements-dev.txt --output-file requirements.txt

format: setup
	$(VENV)/bin/ruff format -q .
	$(C_FILES) | xargs $(VENV)/bin/clang-format -i
	$(VENV)/bin/ruff check -q --fix .

wheel: setup
	$(VENV)/bin/pip wheel -q --no-deps --no-build-isolation -w dist . ./simgpu

# IMAGE_OPTIONS: what the images' build has to know, for example --secret=id=pip.conf,src=FILE (docs/install/image.md).
IMAGE_OPTIONS ?=
release: setup
	@helm=$$($(HELM)) && PYTHONPATH=tools $(PYTHON_IN_VENV) -m release --helm "$$helm" -- "$$VERSION" $(IMAGE_OPTIONS)

cluster: build setup
	$(PYTHON_IN_VENV) -m tests.kit.onenode.up --with-edgeshare

cluster-figures: build setup
	$(PYTHON_IN_VENV) -m tests.kit.onenode.installed.cluster_figures

cluster-down: build setup
	$(PYTHON_IN_VENV) -m tests.kit.onenode.down

clean:
	rm -rf build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf *.so cuda_hook/*.so cuda_hook/_core.c simgpu/lib simgpu/bin
	find sharemgr -name '*.so' -delete
