#!/usr/bin/env bash
# make sanitize: the tests of the library under AddressSanitizer and UndefinedBehaviorSanitizer, some 20 minutes on two
# cores and more; make check does those that read files.
#   scripts/sanitize.sh [PART]...     PART: core, io, ops, geometry, metrics, network, models, engine (default: all)
set -uo pipefail
cd "$(dirname "$0")/.."
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(core io ops geometry metrics network models engine)
scripts/bootstrap.sh test || exit 1
cmake --preset asan >/dev/null && cmake --build --preset asan -j "$(nproc)" --target "${parts[@]/%/_test}" || exit 1
failed=0
for part in "${parts[@]}"; do
    echo "== $part"
    # core_test forks hundreds of processes, each of which would look for leaks for seconds.
    leaks=$([ "$part" = core ] && echo 0 || echo 1)
    ASAN_OPTIONS=detect_leaks=$leaks "build/asan/bin/${part}_test" --gtest_brief=1 || failed=1
done
exit $failed
