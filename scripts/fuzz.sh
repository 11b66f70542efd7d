#!/usr/bin/env bash
# make fuzz: every parser, SECONDS each.   scripts/fuzz.sh 60
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
scripts/bootstrap.sh test
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)"
failed=0 count=0
for program in build/fuzz/bin/fuzz_*; do
    count=$((count + 1))
    log=build/fuzz/$(basename "$program").log
    if scripts/fuzz_one.sh "$program" "$seconds" >"$log" 2>&1; then
        echo "ok    $(basename "$program"): $(sed -n 's/stat::number_of_executed_units: *//p' "$log") inputs"
    else
        failed=$((failed + 1)); tail -30 "$log"; echo "FAIL  $(basename "$program"), $log"
    fi
done
echo "$((count - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
