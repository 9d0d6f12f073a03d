# make demo and make test do all set-up themselves; the rest is for people who change the code.
# .venv grows by what is asked for: "demo" has what running the package takes, "tools" adds what developing it takes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find cpp -name '*.cpp' -o -name '*.hpp')
CORE_SOURCES := $(filter-out cpp/tests/%,$(SOURCES))
BUILD_FLAGS := --no-build-isolation --no-deps -q -C cmake.define.BLOCKGREEDY_WERROR=ON
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo demo-family test test-cpp test-browser docs notebooks lint format stubs sanitize tsan races fuzz hunt bench bench-quick bench-report bench-paths bench-cv bench-users bench-family clean

demo: $(VENV)/built
	$(BIN)/python examples/demo.py

# The algorithms of the paper on one problem, as a table.
demo-family: $(VENV)/built
	$(BIN)/python examples/demo_family.py

test: $(VENV)/built $(VENV)/tools test-cpp
	$(BIN)/python -m pytest -n $(shell nproc) --dist loadgroup -m "not browser"

# The unit tests of the C++ core alone; ONLY=words runs those whose name contains the words.
test-cpp: build/cpp-tests/blockgreedy_tests
	$< "$(ONLY)"

build/cpp-tests-asan/blockgreedy_tests: SANITIZE = address,undefined
build/cpp-tests-tsan/blockgreedy_tests: SANITIZE = thread
build/cpp-tests/blockgreedy_tests build/cpp-tests-asan/blockgreedy_tests build/cpp-tests-tsan/blockgreedy_tests: $(VENV)/demo $(SOURCES) CMakeLists.txt
	PATH="$(abspath $(BIN)):$$PATH" cmake -S . -B $(@D) -G Ninja -DCMAKE_BUILD_TYPE=Release \
	-DBLOCKGREEDY_TESTS=ON -DBLOCKGREEDY_WERROR=ON -DBLOCKGREEDY_SANITIZE=$(SANITIZE) > /dev/null
	PATH="$(abspath $(BIN)):$$PATH" cmake --build $(@D) -- --quiet
	touch $@

# Pages in headless Chromium, from the system's packages; leaves screenshots in build/screenshots.
test-browser: $(VENV)/browser
	tools/install_chromium.sh
	$(BIN)/python -m pytest -m browser

# The documentation site in build/site; a broken link is an error, and nothing is fetched.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build -q
	@echo "build/site/index.html; with search: $(BIN)/python -m http.server -d build/site"

# The notebooks of examples/notebooks, run in place: they are kept with their outputs, which the site shows.
notebooks: $(VENV)/built $(VENV)/tools
	$(BIN)/python tools/docs/notebooks.py

lint: $(VENV)/built $(VENV)/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(SOURCES)
	$(BIN)/mypy

format: $(VENV)/built $(VENV)/tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(SOURCES)

stubs: $(VENV)/built
	$(BIN)/python -m nanobind.stubgen -m blockgreedy._core -o src/blockgreedy/_core.pyi

# The whole suite on a build with AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: .venv-asan/built build/cpp-tests-asan/blockgreedy_tests
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 build/cpp-tests-asan/blockgreedy_tests
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 BLOCKGREEDY_SANITIZED=address \
	.venv-asan/bin/python -m pytest -p no:cacheprovider -m "not browser"

# The tests that use several threads, under ThreadSanitizer, which does not see what NumPy's BLAS agrees on with its own.
tsan: .venv-tsan/built build/cpp-tests-tsan/blockgreedy_tests
	TSAN_OPTIONS=halt_on_error=1 build/cpp-tests-tsan/blockgreedy_tests
	LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so)" TSAN_OPTIONS=halt_on_error=1 BLOCKGREEDY_SANITIZED=thread \
	OPENBLAS_NUM_THREADS=1 \
	.venv-tsan/bin/python -m pytest -p no:cacheprovider -m threads

# One small test of every loop that threads share, under ThreadSanitizer: the part of `make tsan` that the gate runs.
races: .venv-tsan/built
	LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so)" TSAN_OPTIONS=halt_on_error=1 BLOCKGREEDY_SANITIZED=thread \
	OPENBLAS_NUM_THREADS=1 \
	.venv-tsan/bin/python -m pytest -p no:cacheprovider -m races tests/test_races.py

# Text that breaks the svmlight parser, searched for by libFuzzer under AddressSanitizer; needs clang
# (tools/install_clang.sh).
SECONDS ?= 600
fuzz: build/fuzz/svmlight
	mkdir -p build/fuzz/corpus
	cd build/fuzz && ./svmlight -max_total_time=$(SECONDS) -max_len=512 -timeout=5 -print_final_stats=1 \
	-dict=../../fuzz/svmlight.dict corpus

build/fuzz/svmlight: fuzz/svmlight.cpp cpp/data/svmlight.cpp cpp/base/threads.cpp $(wildcard cpp/*/*.hpp)
	mkdir -p $(@D)
	clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Icpp -o $@ \
	fuzz/svmlight.cpp cpp/data/svmlight.cpp cpp/base/threads.cpp -lpthread

# Random problems against an oracle that shares no code with the package; SEED=… repeats a hunt, SECONDS=… is its length.
hunt: $(VENV)/built $(VENV)/tools
	$(BIN)/python -m hunt --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) --out findings $(HUNT)

# The race against other packages, in an environment of its own. RACE="--problems reuters --limit 20" narrows it.
bench: .venv-bench/built
	.venv-bench/bin/python -m benchmarks.race $(RACE)

bench-quick: .venv-bench/built
	.venv-bench/bin/python -m benchmarks.race --quick $(RACE)

bench-report: .venv-bench/built
	.venv-bench/bin/python -m benchmarks.race.report

# Paths of 100 alphas and 5-fold cross-validations against other packages; R's glmnet runs where Rscript has it.
bench-paths: .venv-bench/built
	.venv-bench/bin/python -m benchmarks.paths $(RACE)
	.venv-bench/bin/python -m benchmarks.paths.report

bench-cv: .venv-bench/built
	.venv-bench/bin/python -m benchmarks.cv $(RACE)
	.venv-bench/bin/python -m benchmarks.cv.report

# The race from CSR: fits as users ask for them, with an intercept and every conversion on the clock.
bench-users: .venv-bench/built
	.venv-bench/bin/python -m benchmarks.race.from_rows $(RACE)

# Iterations of the family beside one plain gradient pass.
bench-family: $(VENV)/built
	$(BIN)/python benchmarks/family.py

clean:
	rm -rf .venv .venv-asan .venv-tsan .venv-bench build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python tools/requirements.py demo | $(BIN)/python -m pip install -q -r /dev/stdin
	touch $@

$(VENV)/tools: $(VENV)/demo
	$(BIN)/python tools/requirements.py dev | $(BIN)/python -m pip install -q -r /dev/stdin
	touch $@

$(VENV)/browser: $(VENV)/built $(VENV)/tools
	$(BIN)/python tools/requirements.py browser | $(BIN)/python -m pip install -q -r /dev/stdin
	touch $@

$(VENV)/docs: $(VENV)/built $(VENV)/tools
	$(BIN)/python tools/requirements.py docs | $(BIN)/python -m pip install -q -r /dev/stdin
	touch $@

# The editable install knows the Python files that were there when it was made: a folder changes when one is added.
$(VENV)/built: $(VENV)/demo $(CORE_SOURCES) CMakeLists.txt $(shell find src/blockgreedy -type d -not -name __pycache__)
	$(BIN)/python -m pip install $(BUILD_FLAGS) -e .
	touch $@

# Sanitized builds borrow the packages of the main environment and install a plain copy of ours beside them.
.venv-asan/built: SANITIZE = address,undefined
.venv-tsan/built: SANITIZE = thread
.venv-asan/built .venv-tsan/built: $(VENV)/tools $(CORE_SOURCES) CMakeLists.txt $(wildcard src/blockgreedy/*.py src/blockgreedy/*/*.py)
	test -d $(@D) || $(PYTHON) -m venv $(@D)
	$(BIN)/python -c "import site; print(site.getsitepackages()[0])" > $$(echo $(@D)/lib/python3*/site-packages)/borrowed.pth
	$(@D)/bin/python -m pip install $(BUILD_FLAGS) -C build-dir=build/$(@D) -C cmake.define.BLOCKGREEDY_SANITIZE=$(SANITIZE) --force-reinstall .
	touch $@

.venv-bench/tools: pyproject.toml benchmarks/race/install.py
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -q --upgrade pip
	$(@D)/bin/python benchmarks/race/install.py
	touch $@

.venv-bench/built: .venv-bench/tools $(CORE_SOURCES) CMakeLists.txt $(wildcard src/blockgreedy/*.py src/blockgreedy/*/*.py)
	$(@D)/bin/python -m pip install $(BUILD_FLAGS) -C build-dir=build/$(@D) --force-reinstall .
	touch $@
