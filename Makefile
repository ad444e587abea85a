# Everything that a person or a machine does with this tree. Each target sets up what it needs.

VENV ?= .venv
PYTHON_IN_VENV = $(VENV)/bin/python
NATIVE = $(wildcard cuda_hook/*.h cuda_hook/*/*.[chS] cuda_hook/*/*.def cuda_hook/build_core.py simgpu/*.h simgpu/*/*.[ch] simgpu/*/*/*.[ch] simgpu/*/*.def sharemgr/node/*.py setup.py)

.PHONY: help setup build portable demo test gpu-test check format proto manifest bench bench-cluster cluster cluster-figures cluster-down wheel clean

help:
	@echo "make demo          four programs share two simulated GPUs, for 30 seconds"
	@echo "make check         format, lint, types, import rules, unit tests (under a minute)"
	@echo "make test          everything but the real-GPU tests, a real one-node Kubernetes included"
	@echo "make gpu-test      on a machine with a GPU: its figures, into docs/gpu-results.md"
	@echo "make bench         the figures, as JSON"
	@echo "make bench-cluster what the assigner costs the scheduler of 1,000 and of 5,000 nodes, as JSON"
	@echo "make cluster       a one-node Kubernetes with edgeshare on it; make cluster-down stops it"
	@echo "make cluster-figures  what edgeshare costs that cluster's node, and how soon it is back, as JSON"
	@echo "make build         the native parts, in place    make proto   the generated gRPC code"
	@echo "make portable      the hook for glibc 2.17 and later, x86-64 and aarch64, in build/portable"
	@echo "make manifest      deploy/edgeshare.yaml and the chart's schema"
	@echo "make wheel         a wheel in dist/         make format  the code's format"

# Stamps, so that a second call costs nothing. What only tests and tools need comes when they do: a compiler for other
# processors alone is 400 MB.
$(VENV)/.ready: pyproject.toml setup.py constraints.txt tools/setup
	@tools/setup $(VENV)
	@touch $@

$(VENV)/.tools: $(VENV)/.ready
	@tools/setup $(VENV) dev
	@touch $@

setup: $(VENV)/.tools

$(VENV)/.built: $(VENV)/.ready $(NATIVE)
	@echo "building the native parts" >&2
	@$(PYTHON_IN_VENV) setup.py -q build_ext --inplace
	@touch $@

build: $(VENV)/.built

# As a wheel has it, and for the other processor.
portable: setup
	@for processor in x86_64 aarch64; do \
	    $(PYTHON_IN_VENV) setup.py -q build_portable --target $$processor-linux-gnu.2.17 || exit 1; \
	done

demo: build
	@$(VENV)/bin/edgeshare demo

check: build setup
	$(VENV)/bin/ruff format --check -q .
	$(VENV)/bin/ruff check -q .
	PATH="$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) proto/generate.py --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo
	$(PYTHON_IN_VENV) -m pytest -q tests/unit

# Three runs: what measures shares should have neither other tests nor a Kubernetes beside it.
test: check
	$(PYTHON_IN_VENV) -m pytest -q -n 2 --dist loadfile tests/hook tests/kubelet tests/labeller tests/model tests/sim tests/simgpu
	$(PYTHON_IN_VENV) -m pytest -q tests/demo tests/node tests/tpu
	$(PYTHON_IN_VENV) -m pytest -q tests/assigner tests/deploy tests/cluster

# GPU_PYTHON: the Python that has PyTorch, JAX, CuPy and Numba, where there is one.
GPU_PYTHON ?= python3
gpu-test: build setup
	$(PYTHON_IN_VENV) -m pytest -q tests/gpu --record --python $(GPU_PYTHON)

bench: build setup
	@$(PYTHON_IN_VENV) -m bench

bench-cluster: setup
	@PYTHONPATH=.:tests/cluster $(PYTHON_IN_VENV) -m bench.cluster

proto: setup
	PATH="$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) proto/generate.py

manifest: setup
	$(PYTHON_IN_VENV) deploy/render.py --helm "$$(PYTHONPATH=tests/cluster $(PYTHON_IN_VENV) -c 'from onenode.binaries import HELM, program; print(program(HELM, "helm"))')"

format: setup
	$(VENV)/bin/ruff format -q .
	$(VENV)/bin/ruff check -q --fix .

wheel: setup
	$(VENV)/bin/pip wheel -q --no-deps --no-build-isolation -w dist .

cluster: build setup
	$(PYTHON_IN_VENV) tests/cluster/up.py --with-edgeshare

cluster-figures: setup
	PYTHONPATH=. $(PYTHON_IN_VENV) tests/cluster/figures.py

cluster-down: setup
	$(PYTHON_IN_VENV) tests/cluster/down.py

clean:
	rm -rf build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf *.so cuda_hook/*.so cuda_hook/_core.c sharemgr/node/*.so simgpu/lib simgpu/bin
