#!/usr/bin/env bash
# make demo: from a fresh clone to a sparse scan made dense, a converted, described and drawn one, and to shapes that are
# recognised and taken apart.
#   scripts/demo.sh [PROGRAM]   PROGRAM: a stipple that is built already; without it the release preset is
set -euo pipefail
cd "$(dirname "$0")/.."
begin=$SECONDS
stipple=${1:-build/release/bin/stipple}
if [ $# -eq 0 ]; then
    scripts/bootstrap.sh build
    echo "demo: building the program into build/release"
    mkdir -p build
    if ! { cmake --preset release && cmake --build --preset release -j "$(nproc)"; } >build/demo.log 2>&1; then
        tail -30 build/demo.log >&2
        echo "demo: the build failed; build/demo.log has all of it" >&2
        exit 1
    fi
    echo "demo: built in $((SECONDS - begin)) s"
fi
out=build/demo
mkdir -p $out
run() {
    printf '\n$ stipple'
    for word in "$@"; do
        case $word in *" "* | "") printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    $stipple "$@"
}
run sample examples/data/knot.ply -n 2048 -o $out/sparse.ply --overwrite
run upsample $out/sparse.ply --ratio 4 -o $out/dense.ply --picture $out/dense.png --overwrite
$stipple upsample $out/sparse.ply --ratio 4 --model midpoints -o $out/midpoints.ply --overwrite -q
scores() {  # scores CLOUD NAME: a line of the table below
    $stipple metrics "$out/$1.ply" examples/data/knot.ply --mesh examples/data/knot_mesh.off --table csv -q |
        awk -F, -v name="$2" '{ value[$1] = $2 } END { printf "%-24s %10.2f %10.2f %12.3f\n", name, value["cd_raw"], value["hd_raw"], value["p2f"] }'
}
printf '\nthe knot, thinned to 2,048 points, against the whole scan (CD, HD: squared distances both ways) and the true surface\n'
printf '%-24s %10s %10s %12s\n' '' 'CD (mm^2)' 'HD (mm^2)' 'surface (mm)'
scores sparse 'thinned'
scores midpoints 'x 4 by midpoints'
scores dense 'x 4 by stipple upsample'
run info examples/data/knot.ply
run convert examples/data/knot.ply -o $out/knot.pcd --overwrite
run convert examples/data/knot.ply -o $out/knot.npz --overwrite
run info $out/knot.pcd $out/knot.npz --table md
run picture examples/data/knot.ply examples/data/knot.ply examples/data/knot_mesh.off \
    --captions "scan, by intensity" "scan, by normal" "the mesh that was scanned" --color-by intensity normal "" \
    --inset 0.36 0.62 --elevation 50 --size 640 -o $out/knot.png --overwrite
run classify examples/data/shapes examples/data/chair_mesh.off --picture $out/classes.png --overwrite
run mesh sample examples/data/chair_mesh.off -n 8192 -o $out/chair.ply --overwrite
run segment $out/chair.ply --category chair -o $out/chair_parts.ply --picture $out/chair_parts.png --overwrite
echo
echo "demo: look at $out/dense.png $out/knot.png $out/classes.png $out/chair_parts.png  ($((SECONDS - begin)) s in all)"
