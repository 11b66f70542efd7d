#!/usr/bin/env bash
# Builds the gpu preset and runs its tests on this machine's GPU, then once more under compute-sanitizer.
#   scripts/gpu_test.sh [LOG]
set -uo pipefail
cd "$(dirname "$0")/.."
log=${1:-build/gpu-test.log}
mkdir -p build "$(dirname "$log")"
# The tests' Python: the first one in the search path, which has numpy, torch and safetensors there.
STIPPLE_PYTHON=$(command -v python3)
export STIPPLE_PYTHON
tests=(core_test io_test picture_test cli_test)
{
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    cmake --preset gpu -DSTIPPLE_BUILD_BENCH=OFF >/dev/null &&
        cmake --build --preset gpu --target "${tests[@]}" stipple_program | grep -E 'error|warning|FAILED'
    build/gpu/bin/stipple info | head -12
    build/gpu/bin/core_test --gtest_filter='CoreCuda.*'
    if command -v compute-sanitizer >/dev/null; then
        for tool in memcheck racecheck initcheck; do
            echo "compute-sanitizer $tool"
            compute-sanitizer --tool $tool --error-exitcode 9 build/gpu/bin/core_test \
                --gtest_filter='CoreCuda.*-CoreCuda.TooMuch*' --gtest_brief=1 | tail -4
        done
    fi
    # Without Open3D and h5py, which that machine does not have.
    for program in "${tests[@]}"; do
        echo "== $program"
        build/gpu/bin/$program --gtest_brief=1 --gtest_filter='-IoOpen3d.*:Hdf5.AgreesWithH5py'
    done
} 2>&1 | tee "$log"
