# shellcheck shell=bash
# Sourced by test.sh and check.sh: steps that pass or fail, their counts, and the closing line.
mkdir -p build
passed=0 failed=0 skipped=0 began=$SECONDS

say() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - began)); }
step() {  # step NAME COMMAND...: one check; its output goes to a log, and to us when it fails
    local name=$1 log="build/test-${1// /-}.log" begin=$SECONDS
    shift
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1)); echo "ok    $name ($((SECONDS - begin)) s)"
    else
        failed=$((failed + 1)); tail -40 "$log"; echo "FAIL  $name ($((SECONDS - begin)) s, $log)"; return 1
    fi
}
skip() { skipped=$((skipped + 1)); echo "skip  $1"; }
tests() {  # tests NAME ARGUMENTS...: scripts/run_tests.py, each of whose tests counts
    local name=$1 log="build/test-${1// /-}.log" begin=$SECONDS counts
    shift
    scripts/run_tests.py "$@" | tee "$log"
    counts=$(tail -1 "$log" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
    [ -n "$counts" ] || counts="0 1 0"
    set -- $counts
    passed=$((passed + $1)); failed=$((failed + $2)); skipped=$((skipped + $3))
    echo "$([ "$2" -eq 0 ] && echo 'ok   ' || echo 'FAIL ') $name ($((SECONDS - begin)) s, $log)"
}
for_each() {  # for_each FUNCTION: reads paths from stdin, runs the function on each, as many at a time as cores
    local status word
    export -f "$1"
    while read -r status word; do
        if [ "$status" -eq 0 ]; then
            passed=$((passed + 1)); echo "ok    $1 $word"
        else
            failed=$((failed + 1)); tail -40 "build/test-$1-$word.log"; echo "FAIL  $1 $word (build/test-$1-$word.log)"
        fi
    done < <(xargs -P "$(nproc)" -I{} bash -c \
        'word=$(basename "$2"); "$1" "$2" >"build/test-$1-$word.log" 2>&1; echo $? "$word"' _ "$1" {})
}
closing_line() {
    printf '\n%d s\n%d passed, %d failed, %d skipped\n' $((SECONDS - began)) "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
}
