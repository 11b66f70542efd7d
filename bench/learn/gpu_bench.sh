#!/usr/bin/env bash
# Training speed on a GPU beside PyTorch's, in one run: PointNet with both transforms, 1024 points, batches of 1024 and 64.
#   bench/learn/gpu_bench.sh BIN CLASSES [EPOCHS]
# BIN: folder of stipple and stipple-learn. CLASSES: ModelNet40 in any layout. EPOCHS: of each of our runs, 12.
# Ours is `stipple train` as users run it, data and augmentation included; the best epoch counts, after the first two, in
# which libraries and graph are made. PyTorch's is bench/learn/pytorch_gpu_step.py: the step alone, on data that stand still.
set -uo pipefail
[ $# -ge 2 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
bin=$1 classes=$2 epochs=${3:-12}
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STIPPLE_PROGRESS=never
for batch in 1024 64; do
    for precision in tf32 bf16 fp16 fp16-weights; do
        run=$work/$precision-$batch
        "$bin/stipple" train pointnet-cls --data "$classes" --device cuda -o "$run" --batch $batch --epochs "$epochs" \
            --set run.precision=$precision --set model.feature_transform=true --set view.weight=0 --set run.confidence=false \
            --set run.save_every=1000 >"$run.log" 2>&1 || { tail -3 "$run.log"; continue; }
        python3 - "$run/metrics.jsonl" $precision $batch <<'PYTHON'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
epochs = [row for row in rows if "clouds_per_second" in row][2:]
best = max(row["clouds_per_second"] for row in epochs)
batch = int(sys.argv[3])
peak = max(row["device_peak_bytes"] for row in epochs) / 2**30
print(f"{'stipple train':18} {sys.argv[2]:12} {'graph':8} batch {batch:5}: {1e3 * batch / best:8.2f} ms, {best:9.0f} clouds/s, "
      f"{peak:6.2f} GiB", flush=True)
PYTHON
    done
    timeout 240 python3 bench/learn/pytorch_gpu_step.py --batch $batch --way eager,graph --precision bf16,fp16 --steps 20
    timeout 90 python3 bench/learn/pytorch_gpu_step.py --batch $batch --way compile --precision fp16 --steps 20 || echo "torch.compile: not finished in 90 s"
done
