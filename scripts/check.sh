#!/usr/bin/env bash
# make check: what takes too long for make test, 25 minutes on two cores. It needs what make test built.
#   public headers alone | clang-tidy of the parsers | tests under sanitizers | a minute of fuzzing for each parser
set -uo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh
export seconds=${1:-60}  # of fuzzing

# Every public header compiles alone against what is installed: there is no private header for it to include.
headers_check() {
    cmake --install build/ci --prefix "$PWD/build/installed" >/dev/null &&
    (cd build/installed/include && find stipple -name '*.h') | xargs -P "$(nproc)" -I{} sh -c \
        'echo "#include \"{}\"" | g++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror -DFMT_SHARED -x c++ -I build/installed/include - || { echo "stipple: {} does not compile alone"; exit 255; }'
}
build_fuzz() { cmake --preset fuzz && cmake --build --preset fuzz -j "$(nproc)" --target "${sanitized[@]/%/_test}" fuzzers; }
fuzz() { scripts/fuzz_one.sh "$1" "$seconds"; }

say "packages"
scripts/bootstrap.sh test || { echo "0 passed, 1 failed"; exit 1; }
say "public headers alone"
step "public headers alone" headers_check
say "clang-tidy"
step "clang-tidy of the parsers" scripts/tidy.sh --quick stipple/io
say "sanitizers"
sanitized=(io core network data)  # what reads files that strangers wrote; the other folders: make sanitize
if step "build fuzz" build_fuzz; then
    tests "sanitized" $(printf 'build/fuzz/bin/%s_test ' "${sanitized[@]}")
    say "fuzzing, $seconds s for each parser"
    for_each fuzz < <(printf '%s\n' build/fuzz/bin/fuzz_*)
fi
closing_line
