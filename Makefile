# From a clean clone: `make demo` or `make test`. Each target does the set-up it needs; `make` lists them all.
BUILD      ?= build
OUT        ?= out
PREFIX     ?= /usr/local
JOBS       ?= $(shell nproc)
SETUP      ?= scripts/setup.sh
CMAKE_ARGS ?=
CTEST_ARGS ?=
BENCH_ARGS ?=
TORCH      ?= $(BUILD)-torch/venv
PIP_ARGS   ?=
LISTS       = scripts/packages.txt scripts/packages-lint.txt
CTEST       = ctest --output-on-failure --no-tests=error $(CTEST_ARGS)

.PHONY: help packages setup build program test test-torch demo studies bench variants lint format sanitize install clean
.DEFAULT_GOAL := help

help:  ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12
	@echo "Variables: BUILD=$(BUILD) OUT=$(OUT) PREFIX=$(PREFIX) JOBS=$(JOBS) CMAKE_ARGS=… CTEST_ARGS=… BENCH_ARGS=…; SETUP=true skips the set-up"

packages:
	@$(SETUP)

setup: packages  ## Install the system packages that are missing and fetch the report's; nothing later needs the network
	cmake --preset release -B '$(BUILD)' $(CMAKE_ARGS)

build: setup  ## Compile everything, optimized
	cmake --build '$(BUILD)' --parallel $(JOBS)

test: build  ## Run every test
	$(CTEST) --test-dir '$(BUILD)'
	@scripts/skipped-tests.sh '$(BUILD)'

test-torch: setup  ## Run every test against the newest PyTorch wheel, in a virtual environment
	test -x '$(TORCH)/bin/pip' || python3 -m venv '$(TORCH)'
	'$(TORCH)/bin/pip' install --quiet --upgrade torch $(PIP_ARGS)
	cmake --preset release -B '$(BUILD)-torch' $(CMAKE_ARGS) \
	  -DCMAKE_PREFIX_PATH="$$('$(TORCH)/bin/python' -c 'import torch; print(torch.utils.cmake_prefix_path)')"
	cmake --build '$(BUILD)-torch' --parallel $(JOBS)
	$(CTEST) --test-dir '$(BUILD)-torch'

program: setup  ## Compile the program alone, without tests and benchmarks
	cmake --build '$(BUILD)' --parallel $(JOBS) --target plumb_app

demo: program  ## Study of where layer normalization stands, on the corpus that Plumb brings along
	'$(BUILD)/plumb' study layernorm --out '$(OUT)/layernorm'

bench: build  ## Measure speeds, beside PyTorch's if python3-torch is there, and write the table of docs/performance.md
	scripts/bench.py --plumb '$(BUILD)/plumb' --json '$(OUT)/bench.json' --page docs/performance.md $(BENCH_ARGS)
	test ! -x '$(BUILD)/bench/kernels' || '$(BUILD)/bench/kernels' --benchmark_out='$(OUT)/bench-kernels.json'

studies: program  ## Every study on that corpus
	for study in layernorm residual_schemes collapse tricks norms fast_weights; do '$(BUILD)/plumb' study $$study --out "$(OUT)/$$study" || exit 1; done

variants: build  ## Write docs/variants.md from the registries
	'$(BUILD)/plumb' list --markdown > docs/variants.md.new
	mv docs/variants.md.new docs/variants.md

lint:  ## Check format and clang-tidy's findings (SINCE=REF: only files that differ from REF)
	@$(SETUP) $(LISTS)
	cmake --preset tidy -B '$(BUILD)-tidy' $(CMAKE_ARGS)
	cmake --build '$(BUILD)-tidy' --target plumb_messages
	scripts/lint.sh '$(BUILD)-tidy' $(JOBS)
	scripts/lint-page.sh '$(BUILD)-tidy'

format:  ## Format all sources
	@$(SETUP) $(LISTS)
	git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' | xargs -0 clang-format -i

sanitize: packages  ## Run every test under the address and undefined-behavior sanitizers
	cmake --preset sanitize -B '$(BUILD)-sanitize' $(CMAKE_ARGS)
	cmake --build '$(BUILD)-sanitize' --parallel $(JOBS)
	$(CTEST) --test-dir '$(BUILD)-sanitize'

install: build  ## Install the program, the library and its headers under PREFIX
	cmake --install '$(BUILD)' --prefix '$(PREFIX)'

clean:  ## Remove what was built
	rm -rf '$(BUILD)' '$(BUILD)-tidy' '$(BUILD)-sanitize'
