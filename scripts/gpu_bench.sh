#!/usr/bin/env bash
# Times the ops on this machine's GPU, beside PyTorch on the same shapes in the same run, and prints one Markdown table.
#   scripts/gpu_bench.sh [--quick] [--no-torch] [FOLDER for the results, default build/gpu-bench]
set -euo pipefail
cd "$(dirname "$0")/.."
quick=() torch=1 folder=build/gpu-bench
for word in "$@"; do
    case $word in
        --quick) quick=(--quick) ;;
        --no-torch) torch=0 ;;
        -*) echo "usage: scripts/gpu_bench.sh [--quick] [--no-torch] [FOLDER]" >&2; exit 2 ;;
        *) folder=$word ;;
    esac
done
mkdir -p build "$folder"
export PATH=$PATH:/usr/local/cuda/bin
cmake --preset gpu -DSTIPPLE_BUILD_BENCH=OFF >build/gpu-bench.log
cmake --build --preset gpu -j "$(nproc)" --target stipple_program >>build/gpu-bench.log || { tail -30 build/gpu-bench.log; exit 1; }
build/gpu/bin/stipple bench ops --device cuda "${quick[@]}" --json --progress never >"$folder/cuda.json" ||
    { cat "$folder/cuda.json"; exit 1; }
build/gpu/bin/stipple bench ops --device cpu --quick --op knn chamfer farthest_point_sample voxel_grid --json \
    --progress never >"$folder/cpu.json" || cat "$folder/cpu.json"
if [ $torch -eq 1 ] && python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    timeout 150 python3 bench/ops/torch_peers.py time "${quick[@]}" -o "$folder/torch.json" || echo "PyTorch's part failed"
fi
python3 bench/ops/torch_peers.py table "$folder/cuda.json" "$folder/torch.json" | tee "$folder/ops-cuda.md"
