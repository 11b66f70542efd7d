#!/usr/bin/env bash
# Builds the gpu preset and runs its tests on this machine's GPU, then once more under compute-sanitizer.
#   scripts/gpu_test.sh [LOG]
set -uo pipefail
cd "$(dirname "$0")/.."
log=${1:-build/gpu-test.log}
mkdir -p build "$(dirname "$log")"
{
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    cmake --preset gpu -DSTIPPLE_BUILD_BENCH=OFF >/dev/null && cmake --build --preset gpu --target core_test io_test stipple_program || exit 1
    build/gpu/bin/stipple info | head -12
    build/gpu/bin/core_test --gtest_brief=1
    build/gpu/bin/core_test --gtest_filter='CoreCuda.*'
    if command -v compute-sanitizer >/dev/null; then
        for tool in memcheck racecheck initcheck; do
            echo "compute-sanitizer $tool"
            compute-sanitizer --tool $tool --error-exitcode 9 build/gpu/bin/core_test --gtest_filter='CoreCuda.*-CoreCuda.TooMuch*' --gtest_brief=1 | tail -4
        done
    fi
    build/gpu/bin/io_test --gtest_brief=1
} 2>&1 | tee "$log"
