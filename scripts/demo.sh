#!/usr/bin/env bash
# make demo: from a fresh clone to a converted, described and drawn scan.
set -euo pipefail
cd "$(dirname "$0")/.."
begin=$SECONDS
scripts/bootstrap.sh build
echo "demo: building the program into build/release"
mkdir -p build
if ! { cmake --preset release && cmake --build --preset release; } >build/demo.log 2>&1; then
    tail -30 build/demo.log >&2
    echo "demo: the build failed; build/demo.log has all of it" >&2
    exit 1
fi
echo "demo: built in $((SECONDS - begin)) s"
stipple=build/release/bin/stipple
out=build/demo
mkdir -p $out
run() { echo; echo "\$ stipple $*"; $stipple "$@"; }
run info examples/data/statue.ply
run convert examples/data/statue.ply -o $out/statue.pcd --overwrite
run convert examples/data/statue.ply -o $out/statue.las --overwrite
run info $out/statue.pcd $out/statue.las --table md
run picture examples/data/statue.ply examples/data/statue.ply examples/data/statue_mesh.off \
    --captions "height" "normals" "the mesh that was scanned" --color-by z normal "" -o $out/statue.png --overwrite
echo
echo "demo: look at $out/statue.png  ($((SECONDS - begin)) s in all)"
