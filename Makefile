# From a clean clone: `make demo` or `make test`. Each target does the setup it needs; `make` lists them all.
BUILD      ?= build
OUT        ?= out
PREFIX     ?= /usr/local
JOBS       ?= $(shell nproc)
SETUP      ?= scripts/setup.sh
CMAKE_ARGS ?=
CTEST_ARGS ?=
BENCH_ARGS ?=
SANITIZER  ?= address
FUZZ       ?= 60
SECONDS    ?= 600
SEED       ?= $(shell date +%s)
MUTATIONS_ARGS ?= --seed 1
PEERS      ?= $(BUILD)-peers
TORCH      ?= $(BUILD)-torch/venv
PIP_ARGS   ?=
UPGRADE    ?= --upgrade
PYTHON     ?= python3
VENV        = test -x '$(TORCH)/bin/pip' || $(PYTHON) -m venv '$(TORCH)' || { $(SETUP) scripts/packages-torch.txt && $(PYTHON) -m venv '$(TORCH)'; }
LISTS       = scripts/packages.txt scripts/packages-test.txt
# Nothing if the build directory has tests already.
NO_TESTS    = $$(test -e '$(BUILD)/CTestTestfile.cmake' || echo -DPLUMB_BUILD_TESTS=OFF -DPLUMB_BUILD_BENCHMARKS=OFF)
PRESET      = $(if $(filter thread,$(SANITIZER)),sanitize-thread,sanitize)
CTEST       = ctest --output-on-failure --no-tests=error --parallel $(JOBS) $(CTEST_ARGS)

.PHONY: help packages setup setup-program build program installable quick test mutations test-torch test-python headers wheel demo studies bench variants lint format sanitize fuzz search install package clean
.DEFAULT_GOAL := help

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12
	@echo "Variables: BUILD=$(BUILD) OUT=$(OUT) PREFIX=$(PREFIX) JOBS=$(JOBS) CMAKE_ARGS=… CTEST_ARGS=… BENCH_ARGS=… MUTATIONS_ARGS=… SANITIZER=$(SANITIZER) FUZZ=$(FUZZ) SECONDS=$(SECONDS) PEERS=$(PEERS) TORCH=$(TORCH) PIP_ARGS=… UPGRADE=$(UPGRADE) PYTHON=$(PYTHON); SETUP=true skips the setup"

packages:
	@$(SETUP) $(LISTS)

setup: packages  ## Install packages, fetch the report's packages and configure; `build`, `test`, `demo` and `install` then work offline
	cmake --preset release -B '$(BUILD)' -DPLUMB_BUILD_TESTS=ON -DPLUMB_BUILD_BENCHMARKS=ON $(CMAKE_ARGS)

setup-program:
	@$(SETUP)
	cmake --preset release -B '$(BUILD)' $(NO_TESTS) $(CMAKE_ARGS)

build: setup  ## Compile everything, optimized
	cmake --build '$(BUILD)' --parallel $(JOBS)

quick: build  ## Run the tests for after every edit, about two minutes
	$(CTEST) --test-dir '$(BUILD)' -L quick

test: build  ## Run all tests, and name the slowest
	$(CTEST) --test-dir '$(BUILD)'
	@scripts/test-notes.sh '$(BUILD)'

mutations: packages  ## Count how many of 30 small mistakes in the library the tests notice, in BUILD-mutations; takes hours, goes on where it stopped
	scripts/mutations.py --build '$(BUILD)-mutations' --jobs $(JOBS) $(MUTATIONS_ARGS)

test-torch: setup  ## Run all tests against the newest PyTorch wheel, in a virtual environment
	$(VENV)
	'$(TORCH)/bin/pip' install --quiet --upgrade torch $(PIP_ARGS)
	cmake --preset release -B '$(BUILD)-torch' $(CMAKE_ARGS) \
	  -DCMAKE_PREFIX_PATH="$$('$(TORCH)/bin/python' -c 'import torch; print(torch.utils.cmake_prefix_path)')"
	cmake --build '$(BUILD)-torch' --parallel $(JOBS)
	$(CTEST) --test-dir '$(BUILD)-torch'

test-python: packages  ## Build the Python package, and run its tests with the newest PyTorch wheel, in a virtual environment
	$(VENV)
	python3 scripts/python_requirements.py | xargs -d '\n' '$(TORCH)/bin/pip' install --quiet $(UPGRADE) $(PIP_ARGS)
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) '$(TORCH)/bin/pip' install --no-build-isolation --no-deps --force-reinstall -C build-dir='$(BUILD)-python' .
	'$(TORCH)/bin/python' -m pytest -q -rs --durations=10 -p no:cacheprovider tests/python

headers: packages  ## Compile all sources, without making code, against the headers of Debian 13 and of the PyTorch wheel in TORCH
	scripts/check-headers.sh '$(BUILD)-headers' '$(TORCH)' $(JOBS)

program: setup-program  ## Compile only the program, without tests and benchmarks
	cmake --build '$(BUILD)' --parallel $(JOBS) --target plumb_app

wheel: packages  ## Write the Python package as a wheel, which holds for every PyTorch, to OUT/wheel
	$(VENV)
	'$(TORCH)/bin/pip' wheel --no-deps --wheel-dir '$(OUT)/wheel' $(PIP_ARGS) .

demo: program  ## Run the study of Post-LN and Pre-LN on Plumb's synthetic corpus
	'$(BUILD)/plumb' study layernorm --out '$(OUT)/layernorm'

bench: build  ## Benchmark against the newest PyTorch and CTranslate2 (installed in BUILD-peers); write docs/performance.md
	scripts/bench.py --plumb '$(BUILD)/plumb' --kernels '$(BUILD)/bench/kernels' --peers '$(PEERS)' --json '$(OUT)/bench.json' --page docs/performance.md $(BENCH_ARGS)
	test ! -x '$(BUILD)/bench/kernels' || '$(BUILD)/bench/kernels' --benchmark_out='$(OUT)/bench-kernels.json'

studies: program  ## Run all studies on the synthetic corpus
	for study in layernorm residual_schemes initialization norm_placement fast_weights; do '$(BUILD)/plumb' study $$study --out "$(OUT)/$$study" || exit 1; done

variants: program  ## Write docs/variants.md and the tables of docs/configuration.md from the registries and the keys
	'$(BUILD)/plumb' list --markdown > docs/variants.md.new
	mv docs/variants.md.new docs/variants.md
	'$(BUILD)/plumb' list --tables docs/configuration.md > docs/configuration.md.new
	mv docs/configuration.md.new docs/configuration.md

lint: packages  ## Run clang-format and clang-tidy (SINCE=REF: only files that differ from REF)
	@$(SETUP) scripts/packages-lint.txt
	cmake --preset tidy -B '$(BUILD)-tidy' $(CMAKE_ARGS)
	cmake --build '$(BUILD)-tidy' --target plumb_messages
	scripts/lint.sh '$(BUILD)-tidy' $(JOBS)
	scripts/lint-page.sh '$(BUILD)-tidy'

format:  ## Format all sources
	@$(SETUP) scripts/packages-lint.txt
	git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' | xargs -0 clang-format -i

sanitize: packages  ## Run all tests under the address and undefined-behavior sanitizers; SANITIZER=thread: data races
	cmake --preset $(PRESET) -B '$(BUILD)-$(PRESET)' $(CMAKE_ARGS)
	cmake --build '$(BUILD)-$(PRESET)' --parallel $(JOBS)
	$(CTEST) --test-dir '$(BUILD)-$(PRESET)'

fuzz:  ## Fuzz the file readers, FUZZ seconds each (libFuzzer); KEEP=1: add the inputs that reach new code to the corpus
	@$(SETUP) scripts/packages.txt scripts/packages-fuzz.txt
	scripts/fuzz.sh '$(BUILD)-fuzz' $(FUZZ)

search: build  ## Search at random for what breaks, SECONDS for each kind; prints SEED; with PEERS beside transformers, too
	@echo "SEED=$(SEED)"
	PLUMB_SEARCH_SECONDS='$(SECONDS)' PLUMB_SEARCH_SEED='$(SEED)' PLUMB_PEERS='$(abspath $(PEERS))' '$(BUILD)/tests/test_search'
	PLUMB_SEARCH_SECONDS='$(SECONDS)' '$(BUILD)/tests/test_train' --gtest_filter='*MeshTraining.*'
	PLUMB_KILLS=200 PLUMB_SEARCH_SEED='$(SEED)' '$(BUILD)/tests/test_train' --gtest_filter='Killed.*'
	PLUMB_FAULTS=1000 '$(BUILD)/tests/test_app' --gtest_filter='Border.ASystemCall*'

installable: setup-program
	cmake --build '$(BUILD)' --parallel $(JOBS) --target installable

install: installable  ## Install the program, the library and its headers under PREFIX
	cmake --install '$(BUILD)' --prefix '$(PREFIX)'

package: installable  ## Write release archives and a Debian package for this distribution to OUT/package
	@$(SETUP) scripts/packages-release.txt
	cpack --config '$(BUILD)/CPackConfig.cmake' -B '$(OUT)/package'
	rm -rf '$(OUT)/package/_CPack_Packages'
	scripts/source-archive.sh '$(BUILD)/report/dist/report.html' '$(OUT)/package'
	@ls -sh '$(OUT)/package'

clean:  ## Remove the build directories
	rm -rf '$(BUILD)' '$(BUILD)-tidy' '$(BUILD)-torch' '$(BUILD)-headers' '$(BUILD)-python' '$(BUILD)-wheel' '$(BUILD)-sanitize' '$(BUILD)-sanitize-thread' '$(BUILD)-peers' '$(BUILD)-fuzz' '$(BUILD)-mutations'
