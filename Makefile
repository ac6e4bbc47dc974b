# The front door; CMakePresets.json holds the configurations, CMakeLists.txt the build.
#   make build      the libraries and build/tarn           make check      the release tests
#   make demo       networks with rules and without        make check-all  and sanitizers, every allocation, all networks
#   make bench      beside other engines                   make fuzz       SECONDS=60 for each target, or TARGETS=fuzz_sexp
#   make install    PREFIX=/usr/local DESTDIR=             make format     clang-format over our sources
#   make wheel      for pip, with LLVM within: build/wheel   make mutate     ROOM=quantize N=20: do its tests notice faults?
#   make golden     what seven nets are compiled to, anew, with the difference
#   make deb        a package for this Debian: build/deb
#   make uninstall  what make install of this build installed last
JOBS    ?= $(shell nproc)
PREFIX  ?= /usr/local
SECONDS  = 60
TARGETS  =
ROOM     = quantize
N        = 20
SEED     = 1

.NOTPARALLEL:
.PHONY: build check check-all demo bench bench-egraph install uninstall deb wheel fuzz mutate golden format clean packages

build: packages
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS)

# $(1): a preset. Configured once; CMake looks after later changes itself.
configure = test -f $(if $(filter release,$(1)),build,build-$(1))/build.ninja || cmake --preset $(1)
run_tests = ctest --test-dir $(1) --output-on-failure --no-tests=error -j $(JOBS)

packages:
	@tools/packages.sh

check: build
	@tools/packages.sh check python
	@$(call run_tests,build)

check-all: build wheel
	@tools/packages.sh check python check-all
	@$(call run_tests,build) -C all
	@$(call configure,asan)
	@cmake --build --preset asan -j $(JOBS)
	@$(call run_tests,build-asan)

demo: packages
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS) --target tarn tarn-full
	@examples/networks/demo.py build
	@examples/digits/run.sh build

bench: bench-egraph
	@bench/run.sh build

bench-egraph: build
	@python3 bench/egraph/run.py build --callgrind --venv build/egglog-venv

install: build
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

uninstall:
	@test -f build/install_manifest.txt || { echo "make uninstall: build/install_manifest.txt is not there: nothing was installed from here" >&2; exit 1; }
	@sed 's|^|$(DESTDIR)|' build/install_manifest.txt | tr '\n' '\0' | xargs -0 rm -f --

deb: build
	@cpack --config build/CPackConfig.cmake -G DEB >build/deb.log || { tail -20 build/deb.log >&2; exit 1; }
	@ls build/deb/*.deb

wheel:
	@tools/packages.sh build python wheel
	@$(call configure,release)
	@cmake --build --preset release -j $(JOBS) --target tarn completions wheel_libraries
	@python3 python/tarn_build.py build/wheel

fuzz:
	@tools/packages.sh build check-all
	@$(call configure,fuzz)
	@cmake --build --preset fuzz -j $(JOBS) --target fuzzers
	@tools/fuzz.sh build-fuzz $(SECONDS) $(TARGETS)

mutate: packages
	@tools/mutate.py $(ROOM) -n $(N) --seed $(SEED)

golden: build
	@build/bin/test_golden --update
	@git --no-pager diff --stat -p -- tests/golden

format:
	@tools/packages.sh format
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf build build-debug build-asan build-fuzz build-mutate
