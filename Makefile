# The two commands: make demo, make test. The rest is for those who work on stipple.

.PHONY: demo test check learn kills tidy sanitize architectures fuzz bench format package clean help

demo:  ## install what is missing, build the program, make a scan dense, describe and draw one, recognise shapes and take one apart
	@scripts/demo.sh

test:  ## install what is missing, build everything, run every test
	@scripts/test.sh

check:  ## what make test leaves out for its time, in what it built: headers alone, clang-tidy, sanitizers, 60 s of fuzzing a parser
	@scripts/check.sh

learn:  ## install LibTorch where it is missing, build what trains and run its tests
	@scripts/bootstrap.sh learn && cmake --preset learn && cmake --build --preset learn -j $$(nproc) --target stipple_program stipple_learn_program learn_test && \
		build/learn/bin/learn_test --gtest_brief=1 && echo "built: build/learn/bin/stipple train --help; install: cmake --install build/learn --component learn"

kills:  ## a hundred random kills of stipple train and 2,000 steps that may not grow, a quarter of an hour
	@STIPPLE_KILLS=100 STIPPLE_ITERATIONS=2000 build/learn/bin/learn_test --gtest_filter='TrainProgram.Killed*:Train.MemoryDoesNotGrow'

sanitize:  ## every test of the library under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/sanitize.sh

tidy:  ## clang-tidy over every source of the library, half an hour
	@scripts/tidy.sh

architectures:  ## every .cu for the oldest GPU and for each fast path; make test compiles for sm_90a alone, for its time
	@cmake --preset cuda-check -B build/architectures '-DCMAKE_CUDA_ARCHITECTURES=75-virtual;80-virtual;90a' && \
		cmake --build build/architectures --target cuda_objects

fuzz:  ## fuzz every parser for 60 seconds
	@scripts/fuzz.sh 60

bench:  ## install the peers, build the benchmarks and print them side by side
	@scripts/bench.sh

format:  ## clang-format 14 over all sources
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format-14 -i

package:  ## build/release/*.deb
	@cmake --preset release && cmake --build --preset release && cd build/release && cpack

clean:  ## remove build/
	@rm -rf build

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile
