#!/usr/bin/env bash
# Builds the gpu preset and runs its tests on this machine's GPU, then the CUDA tests once more under compute-sanitizer.
#   scripts/gpu_test.sh [--only PART]... [--no-sanitizer] [LOG]
#       PART: core, io, ops, geometry, metrics, network, models, engine, data, tasks, picture, cli, learn (default: all). LOG: default build/gpu-test.log
set -uo pipefail
cd "$(dirname "$0")/.."
parts=() sanitizer=1 log=build/gpu-test.log
while [ $# -gt 0 ]; do
    case $1 in
        --only) parts+=("${2:?--only needs a part}"); shift 2 ;;
        --no-sanitizer) sanitizer=0; shift ;;
        -*) echo "usage: scripts/gpu_test.sh [--only core|io|ops|geometry|metrics|network|models|engine|data|tasks|picture|cli|learn]... [--no-sanitizer] [LOG]" >&2; exit 2 ;;
        *) log=$1; shift ;;
    esac
done
[ ${#parts[@]} -gt 0 ] || parts=(core io ops geometry metrics network models engine data tasks picture cli learn)
mkdir -p build "$(dirname "$log")"
# The tests' Python: the first one in the search path, which has numpy, torch and safetensors there.
STIPPLE_PYTHON=$(command -v python3)
export STIPPLE_PYTHON
export PATH=$PATH:/usr/local/cuda/bin

# The CUDA tests of a program that ran, suite by suite, shortest first, until their times add up: a sanitizer is 10 to 50
# times slower, and racecheck, which watches every access to shared memory, ten times as slow again.
short_cuda_tests() {  # short_cuda_tests REPORT.json SECONDS_OF_A_SUITE: lines of suite and gtest filter
    python3 - "$@" <<'PYTHON'
import json, sys
for suite in json.load(open(sys.argv[1]))["testsuites"]:
    tests = []
    for test in suite["testsuite"]:
        name = suite["name"] + "." + test["name"]
        wanted = name.endswith("/cuda") or suite["name"] == "CoreCuda"
        if wanted and test.get("result") == "COMPLETED" and "TooMuch" not in name and not test.get("failures"):
            tests.append((float(test["time"].rstrip("s")), name))
    chosen, total = [], 0.0
    for seconds, name in sorted(tests):
        if chosen and total + seconds > float(sys.argv[2]): break
        chosen.append(name)
        total += seconds
    if chosen and suite["name"] != "Endurance": print(suite["name"], ":".join(chosen))
PYTHON
}

check() {  # check TOOL PROGRAM SUITE FILTER: one suite under one tool, 110 seconds at most; one line
    local log="build/gpu-$1-$3.log"
    timeout 110 compute-sanitizer --tool "$1" --error-exitcode 9 "build/gpu/bin/$2" --gtest_filter="$4" \
        --gtest_brief=1 >"$log" 2>&1
    echo "$1 $3: exit $?, $(sed -n 's/^=* *\(.*SUMMARY.*\)/\1/p' "$log" | head -1), $(sed -n 's/^\[  \(PASSED\)  \]/\1/p' "$log")"
}
export -f check

sanitize() {  # sanitize PROGRAM
    local tool
    for tool in memcheck initcheck racecheck; do
        short_cuda_tests "build/gpu-$1.json" $([ $tool = racecheck ] && echo 0.02 || echo 0.15) | sed "s/^/$tool $1 /"
    done | xargs -P "$(nproc)" -L 1 bash -c 'check "$@"' _ | sort
}

{
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    targets=()
    for part in "${parts[@]}"; do targets+=("${part}_test"); done
    options=(-DSTIPPLE_BUILD_BENCH=OFF)
    case " ${parts[*]} " in *" learn "*)  # with the LibTorch of that Python
        options+=(-DSTIPPLE_BUILD_LEARN=ON "-DSTIPPLE_TORCH=$("$STIPPLE_PYTHON" -c 'import os, torch; print(os.path.dirname(torch.__file__))')") ;;
    esac
    cmake --preset gpu "${options[@]}" >/dev/null &&
        cmake --build --preset gpu -j "$(nproc)" --target "${targets[@]}" stipple_program | grep -E 'error|warning|FAILED'
    build/gpu/bin/stipple info --device cuda | head -12
    # Without Open3D and h5py, which that machine does not have.
    for program in "${targets[@]}"; do
        echo "== $program"
        build/gpu/bin/$program --gtest_brief=1 --gtest_filter='-IoOpen3d.*:Hdf5.AgreesWithH5py:*Open3*' \
            --gtest_output=json:build/gpu-$program.json
        python3 - "build/gpu-$program.json" <<'PYTHON'
import json, sys
tests = [t["name"] for s in json.load(open(sys.argv[1]))["testsuites"] for t in s["testsuite"]]
gpu = sum(t.endswith("/cuda") for t in tests)
if gpu: print(gpu, "ran on the GPU,", sum(t.endswith("/cpu") for t in tests), "on the CPU")
PYTHON
        case $program in core_test | ops_test | geometry_test | engine_test)
            if [ $sanitizer -eq 1 ] && command -v compute-sanitizer >/dev/null; then sanitize "$program"; fi ;;
        esac
    done
} 2>&1 | tee "$log"
