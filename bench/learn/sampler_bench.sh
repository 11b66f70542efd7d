#!/usr/bin/env bash
# Training steps of samplers on a GPU beside PyTorch's, in one run.
#   bench/learn/sampler_bench.sh BIN CLASSES SHAPES PCRNET AUTOENCODER
# BIN: folder of stipple and stipple-learn. CLASSES: ModelNet40, 1024 points or more; SHAPES: 2048, the four classes of the
# autoencoder at least. PCRNET, AUTOENCODER: frozen weights. Ours is `stipple train samplenet` as users run it, data included; the
# best epoch counts, after the first two. PyTorch's is bench/learn/pytorch_sampler_step.py, on data that stand still.
set -uo pipefail
[ $# -eq 5 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
bin=$1 classes=$2 shapes=$3 pcrnet=$4 autoencoder=$5
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STIPPLE_PROGRESS=never
step() {  # step TASK BATCH ARGUMENTS...
    local task=$1 batch=$2 run=$work/$1
    shift 2
    "$bin/stipple" train samplenet --task "$task" --device cuda -o "$run" "$@" --set run.save_every=1000 >"$run.log" 2>&1 ||
        { tail -3 "$run.log"; return; }
    python3 - "$run/metrics.jsonl" "$task" "$batch" <<'PYTHON'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
best = max(row["clouds_per_second"] for row in rows if "clouds_per_second" in row and row["epoch"] > 2)
print(f"stipple train samplenet {sys.argv[2]} graph : {1e3 * int(sys.argv[3]) / best:8.3f} ms a step", flush=True)
PYTHON
}
step cls 32 -n 32 --data "$classes" --network pointnet-cls --epochs 8
step reg 32 -n 64 --data "$classes" --network "$pcrnet" --epochs 8
step rec 50 -n 64 --data "$shapes" --network "$autoencoder" --epochs 20
python3 bench/learn/pytorch_sampler_step.py
