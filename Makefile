# `make test` and `make demo` need only a compiler, Python and pip, and create an environment for the rest.
# `make test PYTHON=python3.13` creates a separate one for that version.
PYTHON ?= python3
VENV ?= .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
PY = $(VENV)/bin/python
comma := ,
SOURCES := setup.py pyproject.toml tools/core_docs.py tools/embed_kernels.py tools/make_stencils.py python/cinductor/_core.pyi $(shell find csrc pyext -name '*.[ch]' -o -name '*.def' -o -name '*.cu' -o -name '*.cuh')
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes -Werror
C_FLAGS = -std=gnu11 -fsyntax-only $(WARNINGS) -Icsrc
TESTING = $(VENV)/.with-test-cuda

.PHONY: docs venv test test-dask test-torch lint lint-python lint-english lint-commits lint-c demo bench bench-gpu dashboard economy sweep reports fuzz planted replay soak packages test-cuda test-arm sanitize clean

venv: $(VENV)/.with-test-demo-cuda

$(PY):
	$(PYTHON) -m venv $(VENV)

# The package, built again when a source has changed.
$(VENV)/.built: $(SOURCES) | $(PY)
	$(PY) -m pip install --quiet 'setuptools>=77' 'numpy>=2.0'
	$(PY) -m pip install --quiet --no-build-isolation -e .
	touch $@

# .with-a-b: also the requirements of the extras a and b. The package is installed, so pip does not build it again.
$(VENV)/.with-%: $(VENV)/.built
	$(PY) -m pip install --quiet 'cinductor[$(subst -,$(comma),$*)]'
	touch $@

# Three groups run at a time, the longest first: some tests wait for what is slow or hangs on purpose.
GROUPS_OF_TESTS = core program numpy devices 'capture/test_[a-f]*.py' 'capture/test_[g-o]*.py' 'capture/test_[p-z]*.py' surface 'report tests/packaging tests/torch tests/dask'
test: $(TESTING)
	printf '%s\n' $(GROUPS_OF_TESTS) | xargs -P 3 -I{} sh -c '$(PY) -m pytest -q tests/{}'

# tests/torch, in an environment of its own: torch is large, and nothing else needs it.
TORCH_PY = .venv-torch/bin/python
.venv-torch/.built: $(SOURCES)
	$(PYTHON) -m venv .venv-torch
	$(TORCH_PY) -m pip install --quiet 'setuptools>=77' 'numpy>=2.0' pytest expecttest scikit-learn ml_dtypes
	$(TORCH_PY) -m pip install --quiet torch==2.13.0
	$(TORCH_PY) -m pip install --quiet --no-build-isolation -e .
	touch $@

test-dask: $(TESTING) $(VENV)/.with-dask
	$(PY) -m pytest -q tests/dask
	$(PY) examples/heat_dask.py

test-torch: .venv-torch/.built
	$(TORCH_PY) tools/aten_rows.py --check
	$(TORCH_PY) -m pytest -q tests/torch

test-cuda: $(TESTING)
	CINDUCTOR_TEST_CUDA=1 $(PY) -m pytest -q tests/devices/test_cuda.py

# The core and its kernels for aarch64, under qemu: needs gcc-aarch64-linux-gnu and qemu-user.
test-arm: $(TESTING)
	$(PY) -m pytest -q tests/arm/check_arm.py

lint: lint-python lint-english lint-c

# Comments, docstrings, documents and messages. Limits per folder only fall: `tools/english/lint.py --lower`.
lint-english: | $(PY)
	$(PY) tools/english/lint.py --check

# Not part of lint, whose result must not depend on a remote. Subjects of commits that are not pushed yet, or since another commit:
# `make lint-commits BASE=v0.1`.
lint-commits: BASE ?= @{upstream}
lint-commits: | $(PY)
	if git rev-parse --quiet --verify '$(BASE)^{commit}' >/dev/null; then $(PY) tools/english/lint.py --commits '$(BASE)'; fi

lint-python: $(VENV)/.with-lint
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m mypy.stubtest cinductor._core --ignore-disjoint-bases

lint-c: $(TESTING)
	for cc in gcc clang; do \
	  if command -v $$cc >/dev/null; then \
	    find csrc tests/core -name '*.c' -print0 | \
	      xargs -0 -n 8 -P 2 $$cc $(C_FLAGS) -Wno-string-concatenation -Itests/core && \
	    find pyext -name '*.c' -print0 | xargs -0 -n 4 -P 2 $$cc $(C_FLAGS) -Ipyext -Ibuild/generated \
	      $$($(PY) -c 'import numpy, sysconfig as s; print("-isystem", s.get_path("include"), "-isystem", numpy.get_include())') \
	    || exit 1; \
	  fi; \
	done

# The site, in docs/_build/html: every page of docs/, the reference, the notebooks, and pages from tables.
docs: $(VENV)/.with-docs
	$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html

# The report of every program in tests/programs, opened in headless Chromium if it is installed.
reports: $(TESTING)
	$(PY) tests/support/render_reports.py build/reports

demo: $(VENV)/.with-demo
	$(PY) examples/quantize_photo.py examples/out

# First minutes: scenarios in each mode, and how good the estimates are.
economy: $(VENV)/.built
	$(PY) benchmarks/economy.py
	$(PY) benchmarks/estimates.py

# Functions that are slower than NumPy in the default mode; about an hour.
sweep: $(VENV)/.built
	$(PY) benchmarks/sweep.py --programs

bench: export CINDUCTOR_MODE = now
bench: $(VENV)/.with-bench
	$(PY) benchmarks/run.py
	$(PY) benchmarks/indexing.py
	$(PY) benchmarks/kernels.py
	$(PY) benchmarks/loops.py
	$(PY) benchmarks/memory.py
	$(PY) benchmarks/nodes.py

# Models of PyTorch under eager, Inductor and cinductor, added to the history: table, plot and JSON in benchmarks/out.
dashboard: .venv-torch/.built
	$(TORCH_PY) benchmarks/torch_models.py $(if $(MODELS),--models $(MODELS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(COMPILE),--compile)

# cinductor, torch.compile, CuPy and JAX on one GPU: needs a Python that has them, e.g. GPU_PY=python3.
GPU_PY ?= $(PY)
bench-gpu:
	$(GPU_PY) benchmarks/gpu.py $(if $(OUT),--out $(OUT)) $(if $(SECONDS),--budget $(SECONDS)) $(PROGRAMS)

# Random programs of every generator for SECONDS, on all processors; then N more of each in the tests.
fuzz: $(TESTING)
	$(PY) tests/support/fuzz.py --seconds $(or $(SECONDS),600)
	CINDUCTOR_FUZZ=$(or $(N),5000) $(PY) -m pytest -q tests/program/test_fuzz.py tests/capture/test_memory.py tests/core/test_pools.py tests/capture/test_hidden_state.py \
	  tests/capture/test_changing_world.py tests/numpy/test_op_matrix.py tests/program/test_ways.py tests/program/test_tuples.py tests/numpy/test_indexing.py \
	  tests/core/test_indirect.py tests/program/test_programs.py tests/core/test_core.py tests/core/test_golden.py -k 'not test_core or random'

planted: $(TESTING)
	$(PY) tests/support/planted.py $(or $(N),3000)

# Compares this tree with the commit BASE on a corpus: texts of all levels, bits, times.
replay: $(TESTING)
	rm -rf build/replay/base
	mkdir -p build/replay/base
	git archive $(or $(BASE),HEAD) | tar -x -C build/replay/base
	$(MAKE) -C build/replay/base $(TESTING)
	build/replay/base/$(PY) tests/replay save build/replay/before.gz $(GROUPS)
	$(PY) tests/replay save build/replay/after.gz $(GROUPS)
	$(PY) tests/replay compare build/replay/before.gz build/replay/after.gz

soak: $(TESTING)
	CINDUCTOR_SOAK=$(or $(SECONDS),600) CINDUCTOR_SOAK_CALLS=$(or $(CALLS),100000) $(PY) -m pytest -q \
	  tests/program/test_soak.py tests/devices/test_devices.py tests/devices/test_cuda.py -k "soak or outside or for_long"

# The tests of public packages with their functions compiled, in a separate environment. SUITES
# selects some of tests/packages/suites.py. Takes an hour on two cores.
packages: .venv-packages/.ready
	.venv-packages/bin/python tests/packages/run.py $(SUITES)

.venv-packages/.ready: tests/packages/requirements.txt $(SOURCES)
	$(PYTHON) -m venv .venv-packages
	.venv-packages/bin/python -m pip install --quiet 'setuptools>=77' wheel -r tests/packages/requirements.txt
	.venv-packages/bin/python -m pip install --quiet --no-build-isolation -e .
	touch $@

# The whole suite in a build with AddressSanitizer and UBSan. Not an editable install, which would put
# its extension into the tree. Python leaks by design, so the tests' own loops look for leaks.
sanitize:
	rm -rf build
	$(PYTHON) -m venv .venv-sanitize
	CINDUCTOR_BUILD_SANITIZE=address,undefined .venv-sanitize/bin/python -m pip install --quiet \
	  --force-reinstall '.[test,cuda]'
	rm -rf build
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1 \
	  .venv-sanitize/bin/python -m pytest -q

clean:
	rm -rf .venv .venv-* build dist python/*.egg-info .pytest_cache .ruff_cache
	find python -name '*.so' -delete
