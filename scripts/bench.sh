#!/usr/bin/env bash
# make bench: our times beside our peers', in one run on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/bootstrap.sh bench
cmake --preset dev >/dev/null
cmake --build --preset dev -j "$(nproc)"
for program in build/dev/bin/*_bench; do
    echo "== $(basename "$program")"
    "$program"
done
