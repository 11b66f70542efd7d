#!/usr/bin/env bash
# make test: everything that a change must pass, with one closing line of counts.
#   format | ci build and tests, with what trains | installed package | cuda-check | malformed files under ASan/UBSan | 5 s of fuzzing each
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
passed=0 failed=0 skipped=0

say() { printf '\n== %s\n' "$1"; }
step() {  # step NAME COMMAND...: one check that passes or fails; its output goes to a log, and to us when it fails
    local name=$1 log="build/test-${1// /-}.log" begin=$SECONDS
    shift
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1)); echo "ok    $name ($((SECONDS - begin)) s)"
    else
        failed=$((failed + 1)); tail -40 "$log"; echo "FAIL  $name ($((SECONDS - begin)) s, $log)"; return 1
    fi
}
skip() { skipped=$((skipped + 1)); echo "skip  $1"; }
suite() {  # suite NAME BUILD_FOLDER [ctest options]: each test counts
    local name=$1 folder=$2 log="build/test-${1// /-}.log" begin=$SECONDS
    shift 2
    # As many tests as cores, each with as many threads: threads that wait for work by turning would keep the others from theirs.
    OMP_WAIT_POLICY=passive ctest --test-dir "$folder" --output-on-failure -j "$(nproc)" "$@" >"$log" 2>&1
    local total bad absent
    total=$(sed -n 's/.*tests failed out of \([0-9]*\).*/\1/p' "$log")
    bad=$(sed -n 's/.* \([0-9]*\) tests failed out of .*/\1/p' "$log")
    absent=$(grep -c '\*\*\*Skipped' "$log")
    if [ -z "$total" ] || [ "$total" -eq 0 ]; then
        failed=$((failed + 1)); tail -20 "$log"; echo "FAIL  $name: no tests ran"; return 1
    fi
    passed=$((passed + total - bad - absent)); failed=$((failed + bad)); skipped=$((skipped + absent))
    if [ "$bad" -gt 0 ]; then grep -E '\*\*\*|Failure|error:|which is|Expected|Actual' "$log" | head -60; fi
    echo "$([ "$bad" -eq 0 ] && echo 'ok   ' || echo 'FAIL ') $name: $((total - bad - absent)) of $total passed ($((SECONDS - begin)) s, $log)"
}
program() {  # program NAME PATH: a whole test program, one process for each core; each of its tests counts
    local name=$1 log="build/test-${1// /-}.log" begin=$SECONDS shards status=0 jobs=() good bad absent
    shards=$(nproc)
    for ((i = 0; i < shards; ++i)); do
        GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i OMP_NUM_THREADS=1 "$2" --gtest_brief=1 >"$log.$i" 2>&1 &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job" || status=$?; done
    cat "$log".[0-9]* >"$log"; rm "$log".[0-9]*
    good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | sum)
    bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*/\1/p' "$log" | sum)
    absent=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$log" | sum)
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + good)); failed=$((failed + bad)); skipped=$((skipped + absent))
    if [ "$status" -ne 0 ]; then tail -60 "$log"; fi
    echo "$([ "$status" -eq 0 ] && echo 'ok   ' || echo 'FAIL ') $name: $good passed ($((SECONDS - begin)) s, $log)"
}
sum() { awk '{ n += $1 } END { print n + 0 }'; }
build() { cmake --preset "$1" && cmake --build --preset "$@" -j "$(nproc)"; }  # two more, as ninja would: 4 % slower
build_ci() { cmake --preset ci -DSTIPPLE_BUILD_LEARN="$learn" && cmake --build --preset ci -j "$(nproc)"; }

format_check() { git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format-14 --dry-run -Werror; }
package_check() {
    cmake --install build/ci --prefix "$PWD/build/installed" &&
        cmake -S examples/find_package -B build/example -DCMAKE_PREFIX_PATH="$PWD/build/installed" &&
        cmake --build build/example && build/example/count_points examples/data/knot.ply &&
        cmake -S examples/own_network -B build/own_network -DCMAKE_PREFIX_PATH="$PWD/build/installed" &&
        cmake --build build/own_network && build/own_network/own_network
}
# Every public header compiles alone against what is installed: there is no private header for it to include.
headers_check() {
    (cd build/installed/include && find stipple -name '*.h') | xargs -P "$(nproc)" -I{} sh -c \
        'echo "#include \"{}\"" | g++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror -DFMT_SHARED -x c++ -I build/installed/include - || { echo "stipple: {} does not compile alone"; exit 255; }'
}
deb_check() {  # what users install needs no torch
    (cd build/ci && cpack -G DEB && dpkg-deb --info ./*.deb) &&
        ! dpkg-deb --contents build/ci/*.deb | grep -E '/learn/|stipple-learn|torch' && ! find build/installed | grep -w learn
}

say "packages"
scripts/bootstrap.sh learn || { echo "0 passed, 1 failed"; exit 1; }
learn=$([ -e /usr/include/torch/csrc/api/include/torch/torch.h ] && echo ON || echo OFF)
say "build and tests (preset ci)"
step "format" format_check
step "clang-tidy of the parsers" scripts/tidy.sh --quick stipple/io
if step "build ci" build_ci; then
    suite "tests" build/ci
    # Few processes: torch takes half a second to load, for each test if they were run apart.
    if [ "$learn" = ON ]; then program "learn" build/ci/bin/learn_test; else skip "learn: no LibTorch here"; fi
fi
step "installed package" package_check
step "public headers alone" headers_check
step "deb" deb_check
say "CUDA"
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
    step "cuda-check" build cuda-check
else
    skip "cuda-check: no nvcc here"
fi
say "the parsers under sanitizers, then fuzzed, 5 s each (preset fuzz)"
# They read what strangers wrote. Few processes: the leak check at its end takes seconds. The other folders: make sanitize.
if step "build fuzz" build fuzz --target io_test fuzzers; then
    program "sanitized io" build/fuzz/bin/io_test
    while read -r status name; do
        if [ "$status" -eq 0 ]; then
            passed=$((passed + 1)); echo "ok    $name"
        else
            failed=$((failed + 1)); tail -40 "build/test-$name.log"; echo "FAIL  $name (build/test-$name.log)"
        fi
    done < <(printf '%s\n' build/fuzz/bin/fuzz_* | xargs -P "$(nproc)" -I{} sh -c \
        'scripts/fuzz_one.sh {} 5 >build/test-$(basename {}).log 2>&1; echo $? $(basename {})')
fi
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
