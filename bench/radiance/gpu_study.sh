#!/usr/bin/env bash
# The step-by-step paths of radiance training on this machine's GPU: their tests, the parts of their steps, and the study.
#   bench/radiance/gpu_study.sh [--tests] [--bench] [--study] [--seeds N] [--voxels N,N] [--rows NAME,...] OUTPUT DATA...
# Without --tests, --bench or --study all three. DATA: folders such as nerf_synthetic/lego, needed by the study alone; the bench takes
# the first. OUTPUT: test.txt, bench-PATH.txt and study/. A study that was killed goes on when it is called again with the same OUTPUT.
set -uo pipefail
usage() { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
seeds=3 voxels=160,256 rows=reference,fused_adam,fused_rendering,per_ray_weights,final tests=0 bench=0 study=0
while [ $# -gt 0 ]; do
    case $1 in
        --tests) tests=1; shift ;;
        --bench) bench=1; shift ;;
        --study) study=1; shift ;;
        --seeds) seeds=${2:?}; shift 2 ;;
        --voxels) voxels=${2:?}; shift 2 ;;
        --rows) rows=${2:?}; shift 2 ;;
        -*) usage ;;
        *) break ;;
    esac
done
[ $# -ge 1 ] || usage
[ $((tests + bench + study)) -gt 0 ] || tests=1 bench=1 study=1
mkdir -p "$1" || exit 4
output=$(cd "$1" && pwd)
shift
data=()
for folder in "$@"; do
    path=$(cd "$folder" && pwd) || exit 3
    data+=(--data "$path")
done
[ $study -eq 0 ] || [ ${#data[@]} -gt 0 ] || usage
cd "$(dirname "$0")/../.." || exit 1
export PATH=$PATH:/usr/local/cuda/bin
mkdir -p build
targets=()
[ $tests -eq 1 ] && targets+=(radiance_test)
[ $bench -eq 1 ] && targets+=(radiance_bench)
[ $study -eq 1 ] && targets+=(stipple_program)
if ! { cmake --preset gpu && cmake --build --preset gpu -j "$(nproc)" --target "${targets[@]}"; } >build/gpu-study.log 2>&1; then
    tail -30 build/gpu-study.log
    exit 1
fi

failed=0
if [ $tests -eq 1 ]; then
    build/gpu/bin/radiance_test --gtest_filter='*StepPaths*:RadianceExecutorCuda*:RadianceStepBytes*:RadianceTrainCuda*' 2>&1 |
        tee "$output/test.txt" || failed=1
fi
if [ $bench -eq 1 ]; then
    for path in ${rows//,/ }; do
        build/gpu/bin/radiance_bench --path "$path" --voxels "${voxels##*,}" "${data[@]:0:2}" 2>&1 | tee "$output/bench-$path.txt" || failed=1
    done
fi
if [ $study -eq 1 ]; then
    build/gpu/bin/stipple study radiance "${data[@]}" --seeds "$seeds" --voxels "$voxels" --rows "$rows" -o "$output/study" || failed=1
fi
exit $failed
