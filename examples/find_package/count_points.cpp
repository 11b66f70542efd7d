#include <cstdio>

#include "stipple/io/format.h"

int main(int argc, char** argv) {
    stipple::io::Warnings warnings;
    for (int i = 1; i < argc; ++i)
        std::printf("%s: %lld points\n", argv[i], (long long)stipple::io::load_cloud(argv[i], {}, warnings).size());
}
