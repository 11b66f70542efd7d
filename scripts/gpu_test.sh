#!/usr/bin/env bash
# Builds the gpu preset and runs its tests on this machine's GPU, then the CUDA tests once more under compute-sanitizer.
#   scripts/gpu_test.sh [--only PART]... [--no-sanitizer] [LOG]
#       PART: core, io, ops, geometry, metrics, picture, cli (default: all). LOG: default build/gpu-test.log
set -uo pipefail
cd "$(dirname "$0")/.."
parts=() sanitizer=1 log=build/gpu-test.log
while [ $# -gt 0 ]; do
    case $1 in
        --only) parts+=("${2:?--only needs a part}"); shift 2 ;;
        --no-sanitizer) sanitizer=0; shift ;;
        -*) echo "usage: scripts/gpu_test.sh [--only core|io|ops|geometry|metrics|picture|cli]... [--no-sanitizer] [LOG]" >&2; exit 2 ;;
        *) log=$1; shift ;;
    esac
done
[ ${#parts[@]} -gt 0 ] || parts=(core io ops geometry metrics picture cli)
mkdir -p build "$(dirname "$log")"
# The tests' Python: the first one in the search path, which has numpy, torch and safetensors there.
STIPPLE_PYTHON=$(command -v python3)
export STIPPLE_PYTHON
export PATH=$PATH:/usr/local/cuda/bin

# The CUDA tests of a program that ran, shortest first, until their times add up: a sanitizer is 10 to 50 times slower.
short_cuda_tests() {  # short_cuda_tests REPORT.json SECONDS SECONDS_OF_A_SUITE: a gtest filter
    python3 - "$@" <<'PYTHON'
import json, sys
tests, most, most_of_suite = [], float(sys.argv[2]), float(sys.argv[3])
for suite in json.load(open(sys.argv[1]))["testsuites"]:
    for test in suite["testsuite"]:
        name = suite["name"] + "." + test["name"]
        wanted = name.endswith("/cuda") or suite["name"] == "CoreCuda"
        if wanted and test.get("result") == "COMPLETED" and "TooMuch" not in name and not test.get("failures"):
            tests.append((float(test["time"].rstrip("s")), suite["name"], name))
chosen, total, of_suite = [], 0.0, {}
for seconds, suite, name in sorted(tests):
    first = suite not in of_suite  # every op gets its shortest test
    if total + seconds <= most and of_suite.get(suite, 0.0) + seconds <= most_of_suite or first and seconds <= most / 4:
        chosen.append(name)
        total += seconds
        of_suite[suite] = of_suite.get(suite, 0.0) + seconds
print(f"{len(chosen)} of {len(tests)} CUDA tests, {total:.1f} s without a sanitizer", file=sys.stderr)
print(":".join(chosen))
PYTHON
}

sanitize() {  # sanitize PROGRAM: the tools side by side, three minutes at most
    local filter tool pids=()
    for tool in memcheck racecheck initcheck; do
        # Watching every access to shared memory takes ten times as long again.
        if [ $tool = racecheck ]; then set -- "$1" 0.8 0.05; else set -- "$1" 4 0.4; fi
        filter=$(short_cuda_tests "build/gpu-$1.json" "$2" "$3") || return 1
        if [ -z "$filter" ]; then return; fi
        timeout 180 compute-sanitizer --tool $tool --error-exitcode 9 "build/gpu/bin/$1" --gtest_filter="$filter" \
            --gtest_brief=1 >"build/gpu-$1-$tool.log" 2>&1 &
        pids+=($!)
    done
    for tool in memcheck racecheck initcheck; do
        wait "${pids[0]}"
        echo "compute-sanitizer $tool, $1: exit $?"
        pids=("${pids[@]:1}")
        if ! grep -q -E 'ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards' "build/gpu-$1-$tool.log"; then
            grep -m 20 -E '=========' "build/gpu-$1-$tool.log"
        fi
        tail -3 "build/gpu-$1-$tool.log"
    done
}

{
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    targets=()
    for part in "${parts[@]}"; do targets+=("${part}_test"); done
    cmake --preset gpu -DSTIPPLE_BUILD_BENCH=OFF >/dev/null &&
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
        case $program in core_test | ops_test | geometry_test)
            if [ $sanitizer -eq 1 ] && command -v compute-sanitizer >/dev/null; then sanitize "$program"; fi ;;
        esac
    done
} 2>&1 | tee "$log"
