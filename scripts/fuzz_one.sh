#!/usr/bin/env bash
# Fuzzes one parser for some seconds, beginning with its malformed and valid samples. New findings stay in build/.
#   scripts/fuzz_one.sh build/fuzz/bin/fuzz_ply 60
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 seconds=$2
name=$(basename "$program")
corpus=build/fuzz-corpus/$name
mkdir -p "$corpus"
seeds=()
for folder in "tests/corpus/${name#fuzz_}" "tests/samples/${name#fuzz_}"; do
    if [ -d "$folder" ]; then seeds+=("$folder"); fi
done
# Five seconds an input, which take milliseconds on a machine that is not busy; the memory rule (64 x the input + 1 MiB) is checked by the program itself.
exec "$program" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$corpus/crash-" "$corpus" "${seeds[@]}"
