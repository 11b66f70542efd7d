# shellcheck shell=bash
# Sourced: lets several processes use a GPU at a time, until the script ends, where the driver offers it and nobody has
# arranged it before. $1: a folder for its files.
if [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] && command -v nvidia-cuda-mps-control >/dev/null; then
    export CUDA_MPS_PIPE_DIRECTORY=$1/mps CUDA_MPS_LOG_DIRECTORY=$1/mps-log
    mkdir -p "$1/mps" "$1/mps-log"
    nvidia-cuda-mps-control -d && trap 'echo quit | nvidia-cuda-mps-control' EXIT
fi
