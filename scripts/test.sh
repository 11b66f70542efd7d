#!/usr/bin/env bash
# make test: everything is built and every test runs, in 25 minutes on two cores with nothing built before. What takes
# longer is in make check (scripts/check.sh).
#   format | ci build | demo | tests, with what trains and the Python module | corpora | installed package | deb | CUDA sources
set -uo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh

build_ci() { cmake --preset ci -DSTIPPLE_BUILD_LEARN="$learn" && cmake --build --preset ci -j "$(nproc)"; }
format_check() { git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -P "$(nproc)" -n 100 clang-format-14 --dry-run -Werror; }
replay() {  # the malformed and the valid files that a fuzzer begins with, of one parser; without any it fails
    local name=${1##*/fuzz_} folder folders=()
    case $name in
        engine_file)  # tied to a version of the program, so made by this one
            mkdir -p build/engines &&
                build/ci/bin/stipple engine build weights/samplenet-rec-32.safetensors -o build/engines/sampler.engine --overwrite -q
            folders=(build/engines weights) ;;
        xyzrgb) name=xyz ;;&
        *)
            for folder in "tests/corpus/$name" "tests/samples/$name"; do
                if [ -d "$folder" ]; then folders+=("$folder"); fi
            done ;;
    esac
    "$1" "${folders[@]}"
}
package_check() {
    cmake --install build/ci --prefix "$PWD/build/installed" &&
        cmake -S examples/find_package -B build/example -DCMAKE_PREFIX_PATH="$PWD/build/installed" &&
        cmake --build build/example && rm -f build/example/few.ply &&
        build/example/thin_scan examples/data/knot.ply 1000 build/example/few.ply &&
        cmake -S examples/own_network -B build/own_network -DCMAKE_PREFIX_PATH="$PWD/build/installed" &&
        cmake --build build/own_network && build/own_network/own_network
}
deb_check() {  # what users install needs no torch
    (cd build/ci && cpack -G DEB && dpkg-deb --info ./*.deb) &&
        ! dpkg-deb --contents build/ci/*.deb | grep -E '/learn/|stipple-learn|torch' && ! find build/installed | grep -w learn
}
cuda_check() { cmake --preset cuda-check && cmake --build --preset cuda-check -j "$(nproc)"; }

say "packages"
scripts/bootstrap.sh learn || { echo "0 passed, 1 failed"; exit 1; }
learn=$([ -e /usr/include/torch/csrc/api/include/torch/torch.h ] && echo ON || echo OFF)
say "build (preset ci)"
step "format" format_check
if step "build ci" build_ci; then
    say "tests"
    step "demo" scripts/demo.sh build/ci/bin/stipple
    programs=(build/ci/bin/{cli,docs,radiance,tasks,geometry,engine,ops,io,core,data,metrics,models,network,picture}_test)
    if [ "$learn" = ON ]; then programs+=(--one-thread build/ci/bin/learn_test); else skip "learn: no LibTorch here"; fi
    tests "tests" --python tests/python "${programs[@]}"
    say "corpora"
    for_each replay < <(printf '%s\n' build/ci/replay/fuzz_*)
    say "packages of ours"
    step "installed package" package_check
    step "deb" deb_check
fi
say "CUDA"
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
    step "cuda-check" cuda_check
else
    skip "cuda-check: no nvcc here"
fi
closing_line
