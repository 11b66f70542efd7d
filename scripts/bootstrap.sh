#!/usr/bin/env bash
# Installs what stipple needs and is missing. Debian 12 and Ubuntu 24.04, aarch64 and x86-64; elsewhere it prints the
# list. Idempotent: with everything there it does nothing and needs no root.
#
#   scripts/bootstrap.sh build   what the program needs (make demo)
#   scripts/bootstrap.sh test    that, and what the tests need (make test)
#   scripts/bootstrap.sh learn   that, and LibTorch, for what trains (make learn)
#   scripts/bootstrap.sh bench   what the tests need, and the peers that the benchmarks compare with
#   scripts/bootstrap.sh LEVEL --list   only prints the package names
set -euo pipefail

build=(g++ cmake ninja-build libcli11-dev libfmt-dev nlohmann-json3-dev
       zlib1g-dev libpng-dev libjpeg-dev libhdf5-dev libeigen3-dev libembree-dev)
test=(ccache libgtest-dev clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev python3 python3-numpy python3-h5py python3-open3d
      pybind11-dev python3-dev python3-pytest python3-hypothesis python3-scipy python3-distributed
      jq locales libfaketime util-linux procps dpkg-dev file git)
learn=(libtorch-dev libgloo-dev libopenblas0-openmp python3-torch)  # without OpenBLAS, products run thirty times slower
bench=(libbenchmark-dev libpcl-dev libopen3d-dev libnanoflann-dev libflann-dev libcgal-dev liblz4-dev libtbb-dev)

case "${1:-build}" in
    build) packages=("${build[@]}") ;;
    test) packages=("${build[@]}" "${test[@]}") ;;
    learn) packages=("${build[@]}" "${test[@]}" "${learn[@]}") ;;
    bench) packages=("${build[@]}" "${test[@]}" "${bench[@]}") ;;
    *) echo "usage: scripts/bootstrap.sh build|test|learn|bench [--list]" >&2; exit 2 ;;
esac
if [ "${2:-}" = --list ]; then
    printf '%s\n' "${packages[@]}"
    exit 0
fi

# onnxruntime, which checks our ONNX files: an npm package, only where Node.js is. It brings its own binaries, so no
# script of it has to run. Without it those tests are skipped, and say so.
install_onnx_runtime() {
    local folder installed log
    folder=$(dirname "${BASH_SOURCE[0]}")/../tests/network/onnx_runtime
    installed=$folder/node_modules/.package-lock.json  # npm writes it last
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        echo "bootstrap: no Node.js with npm here; tests that run ONNX files will be skipped"
    elif [ ! -e "$installed" ] || [ "$folder/package-lock.json" -nt "$installed" ]; then
        log=$(mktemp)
        echo "bootstrap: installing onnxruntime-node (npm)"
        if ! (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline) >"$log" 2>&1; then
            tail -5 "$log"
            echo "bootstrap: npm ci failed; tests that run ONNX files will be skipped"
        fi
        rm -f "$log"
    fi
}
[ "${1:-build}" = build ] || install_onnx_runtime

system=$(. /etc/os-release 2>/dev/null && echo "${ID:-unknown} ${VERSION_ID:-}" || echo unknown)
case "$system" in
    "debian 12"* | "ubuntu 24.04"*) ;;
    *)
        echo "bootstrap: $system is not Debian 12 or Ubuntu 24.04. Install what corresponds to these packages:"
        printf '  %s\n' "${packages[@]}"
        exit 0
        ;;
esac

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "bootstrap: all ${#packages[@]} packages are there"
    exit 0
fi

echo "bootstrap: installing ${#missing[@]} of ${#packages[@]} packages: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "bootstrap: not root and no sudo. Run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
fail() {
    tail -20 "$log" >&2
    echo "bootstrap: apt-get failed" >&2
    exit 1
}
"${as_root[@]}" apt-get update -qq >"$log" 2>&1 || fail
available=()
known=$(apt-cache madison "${missing[@]}" 2>/dev/null | awk '{ print $1 }')  # one call: each takes half a second
for package in "${missing[@]}"; do
    if grep -qxF "$package" <<<"$known"; then
        available+=("$package")
    else
        echo "bootstrap: $system has no package $package; what needs it will say so"
    fi
done
if [ ${#available[@]} -gt 0 ]; then
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${available[@]}" >"$log" 2>&1 || fail
fi
echo "bootstrap: done"
