#!/usr/bin/env bash
# Variants of a recipe on held-out clouds, so many at a time on one GPU: how the numbers of recipes/pointnet-cls.toml are chosen.
#   bench/learn/recipe_study.sh BIN CHOICE OUT AT_A_TIME SEEDS 'NAME KEY=VALUE ...'...
# BIN: folder of stipple and stipple-learn. CHOICE: a set made by bench/learn/hold_out.py. SEEDS: 0,1. A variant is one argument:
# its name, then settings of the recipe. OUT may hold runs to be resumed. Prints accuracies in per cent, a line for each run.
set -uo pipefail
[ $# -ge 6 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
bin=$1 choice=$2 out=$3 at_a_time=$4 seeds=$5
shift 5
mkdir -p "$out"
export STIPPLE_PROGRESS=never
# shellcheck source=/dev/null
. "$(dirname "$0")/../../scripts/share_gpu.sh" "$out"

accuracy() {  # accuracy RUN ARGUMENTS...: per cent, of each number of points
    "$bin/stipple" evaluate "$out/$1/weights.safetensors" --data "$choice" "${@:2}" --device cuda --json 2>>"$out/$1.log" |
        python3 -c 'import json, sys; print(*("%.2f" % (100 * s["accuracy"]) for s in json.load(sys.stdin)["scores"]))'
}
one() {  # one SEED NAME KEY=VALUE...
    local seed=$1 name=$2 run=$2-$1 settings=()
    for setting in "${@:3}"; do settings+=(--set "$setting"); done
    if [ -e "$out/$run/config.toml" ]; then set -- --resume "$out/$run"; else set -- pointnet-cls --data "$choice" -o "$out/$run" --seed "$seed" \
        --set run.confidence=false --set run.save_every=50 --set run.precision=fp16 "${settings[@]}"; fi
    "$bin/stipple" train "$@" --device cuda >"$out/$run.log" 2>&1 || { tail -2 "$out/$run.log"; return 1; }
    echo "$name seed $seed: full $(accuracy "$run" --points 1024 --sample first), 128 and 64 random" \
        "$(accuracy "$run" --points 128,64 --sample random --of 1024 --draws 5), 32 farthest $(accuracy "$run" --points 32 --sample fps --of 1024)"
}
for variant in "$@"; do
    for seed in ${seeds//,/ }; do
        while [ "$(jobs -rp | wc -l)" -ge "$at_a_time" ]; do wait -n; done
        # shellcheck disable=SC2086  # a variant is words
        one "$seed" $variant &
    done
done
wait
