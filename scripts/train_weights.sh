#!/usr/bin/env bash
# Trains the weights that ship, three seeds of each recipe side by side on one GPU, and scores them on the test split: the
# figures of bench/results/learn.md. Seed 0 ships, whatever it scores.
#   scripts/train_weights.sh BIN CLASSES PARTS OUT [cls|parts|transforms]... [KEY=VALUE]...
# BIN: folder of stipple and stipple-learn. CLASSES, PARTS: ModelNet40 and PSB parts in any layout, packed files too.
# transforms: the classifier with the feature transform too, seed 0. OUT may hold runs to be resumed. KEY=VALUE: of the
# classifier's recipe, which is trained in float16: the path that bench/learn/gpu_bench.sh times.
set -uo pipefail
[ $# -ge 4 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
bin=$1 classes=$2 parts=$3 out=$4
shift 4
wanted=() settings=(--set run.precision=fp16)
for word in "$@"; do
    case $word in
        *=*) settings+=(--set "$word") ;;
        *) wanted+=("$word") ;;
    esac
done
[ ${#wanted[@]} -gt 0 ] || wanted=(cls parts)
mkdir -p "$out"
export STIPPLE_PROGRESS=never
# shellcheck source=/dev/null
. "$(dirname "$0")/share_gpu.sh" "$out"

train() {  # train RUN RECIPE ARGUMENTS...: a new run, or one that goes on
    local run=$out/$1
    shift
    if [ -e "$run/config.toml" ]; then set -- --resume "$run"; else set -- "$@" -o "$run"; fi
    "$bin/stipple" train "$@" --device cuda --json >"$run.json" 2>"$run.log" || { tail -3 "$run.log"; return 1; }
}
score() {  # score NAME RUN ARGUMENTS...: one line of JSON on the test split
    local name=$1 run=$2
    shift 2
    "$bin/stipple" evaluate "$out/$run/weights.safetensors" "$@" --device cuda --json >"$out/$run-$name.json" 2>>"$out/$run.log" ||
        tail -3 "$out/$run.log"
}
classifier() {  # classifier RUN ARGUMENTS...: trained, then scored from clouds of all sizes
    local run=$1
    train "$@" || return 1
    score full "$run" --data "$classes" --points 1024 --sample first
    score random "$run" --data "$classes" --points 128,64 --sample random --of 1024 --draws 10
    score fps "$run" --data "$classes" --points 32 --sample fps --of 1024
}
segmenter() {
    local run=$1
    train "$@" && score test "$run" --data "$parts"
}

for what in "${wanted[@]}"; do
    case $what in
        cls) for seed in 0 1 2; do classifier "cls-$seed" pointnet-cls --data "$classes" --seed $seed "${settings[@]}" & done ;;
        parts) for seed in 0 1 2; do segmenter "parts-$seed" pointnet-parts --data "$parts" --seed $seed & done ;;
        transforms) classifier transforms-0 pointnet-cls --data "$classes" "${settings[@]}" --set model.feature_transform=true & ;;
        *) echo "train_weights: $what is not known" >&2; exit 2 ;;
    esac
    wait $(jobs -p)
done
