#!/usr/bin/env bash
# clang-tidy 14 with the checks of .clang-tidy; a finding is a failure.
#   scripts/tidy.sh                 every source of the library: half an hour on two cores
#   scripts/tidy.sh --quick PATH... sources below the paths, without the path-sensitive analyser: what make check does
set -euo pipefail
cd "$(dirname "$0")/.."
checks=()
if [ "${1:-}" = --quick ]; then
    checks=(--checks=-clang-analyzer-*)
    shift
fi
[ $# -gt 0 ] || set -- stipple
# Clang's command lines, without the precompiled headers that it would have to build first.
cmake --preset fuzz -B build/tidy -DSTIPPLE_PRECOMPILE=OFF >build/tidy.log
git ls-files "${@/%//*.cpp}" | grep -v '/cpu/chain/' |
    xargs -P "$(nproc)" -n 4 clang-tidy-14 -p build/tidy --quiet --warnings-as-errors='*' "${checks[@]}" 2>/dev/null
