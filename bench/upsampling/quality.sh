#!/usr/bin/env bash
# Quality of upsampling on meshes, by one ruler: inputs drawn anew for each seed, every method on the same ones, scored against
# independent samples of the true surface and the surface itself (x1e-3, means over shapes and seeds).
#   bench/upsampling/quality.sh BIN DATA OUT KIND SEEDS METHOD...
# BIN: folder of stipple. DATA: a folder with meshes/, and gt_8192/ for kind r and cs. OUT: made, and used again.
# KIND: c   2048 farthest of 40,000 samples x 4, truth: 8192 farthest of other 40,000
#       cs  the same inputs, truth: gt_8192
#       r   2048 random points of gt_8192 x 4, truth: gt_8192
#       x16 as c, truth: 32,768 farthest of 160,000
# SEEDS: 0,1,2. METHOD: midpoints, NAME=weights, input (the input itself), or floor (another sample of the surface, as large).
set -euo pipefail
[ $# -ge 6 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
bin=$1 data=$2 out=$3 kind=$4 seeds=$5
shift 5
stipple=$bin/stipple
export STIPPLE_PROGRESS=never
ratio=4 count=8192 samples=40000
if [ "$kind" = x16 ]; then ratio=16 count=32768 samples=160000; fi

surface() {  # surface MESH N SEED OUTPUT: N farthest of samples of a mesh
    [ -e "$4" ] && return
    "$stipple" mesh sample "$1" -n "${5:-40000}" --method uniform --seed "$3" -o "$4.all.ply" -q --overwrite >/dev/null
    "$stipple" sample "$4.all.ply" -n "$2" -o "$4" -q >/dev/null
    rm "$4.all.ply"
}
for seed in ${seeds//,/ }; do
    input=$out/input-${kind/cs/c}-$seed truth=$out/truth-$kind-$seed floor=$out/floor-$kind-$seed
    input=${input/x16/c}
    mkdir -p "$input" "$truth" "$floor"
    for mesh in "$data"/meshes/*; do
        name=$(basename "${mesh%.*}")
        case $kind in
            r) [ -e "$input/$name.ply" ] || "$stipple" sample "$data/gt_8192/$name.xyz" -n 2048 --method random --seed "$seed" -o "$input/$name.ply" -q >/dev/null ;;
            *) surface "$mesh" 2048 $((1000 + seed)) "$input/$name.ply" ;;
        esac
        case $kind in
            r | cs) [ -e "$truth/$name.ply" ] || "$stipple" convert "$data/gt_8192/$name.xyz" -o "$truth/$name.ply" -q >/dev/null ;;
            *) surface "$mesh" $count $((2000 + seed)) "$truth/$name.ply" $samples ;;
        esac
        for method in "$@"; do
            [ "$method" != floor ] || surface "$mesh" $count $((3000 + seed)) "$floor/$name.ply" $samples
        done
    done
done
printf '%-24s %8s %8s %8s %8s %8s\n' "$kind" CD HD "CD raw" "HD raw" P2F
for method in "$@"; do
    for seed in ${seeds//,/ }; do
        input=$out/input-${kind/cs/c}-$seed truth=$out/truth-$kind-$seed
        input=${input/x16/c}
        case $method in
            floor) made=$out/floor-$kind-$seed ;;
            input) made=$input ;;
            *)
                made=$out/${method%%=*}-x$ratio-$(basename "$input")
                if [ ! -e "$made" ]; then
                    mkdir "$made"
                    "$stipple" upsample "$input" --ratio $ratio --model "${method#*=}" -o "$made/" -q >/dev/null || { rm -r "$made"; exit 1; }
                fi
                ;;
        esac
        "$stipple" metrics "$made" "$truth" --mesh "$data/meshes" --json -q 2>/dev/null
    done | python3 -c '
import json, sys
text, decoder, sums, n = sys.stdin.read().strip(), json.JSONDecoder(), {}, 0
while text:
    found, end = decoder.raw_decode(text)
    text, n = text[end:].strip(), n + 1
    for score in found["scores"]: sums[score["name"]] = sums.get(score["name"], 0) + score["value"]
print("%-24s" % sys.argv[1], *("%8.4f" % (1e3 * sums[key] / n) for key in ("cd", "hd", "cd_raw", "hd_raw", "p2f")))' "${method%%=*}"
done
