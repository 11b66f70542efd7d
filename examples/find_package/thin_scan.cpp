// Keeps some points of a scan, spread evenly, with all their attributes: thin_scan INPUT COUNT OUTPUT

#include <cstdio>
#include <cstdlib>

#include "stipple/io/format.h"
#include "stipple/ops/farthest_point_sample.h"

using namespace stipple;

int main(int argc, char** argv) try {
    if (argc != 4) {
        std::fputs("thin_scan INPUT COUNT OUTPUT\n", stderr);
        return 2;
    }
    const int64_t count = std::atoll(argv[2]);
    io::Warnings warnings;  // of what a file has and a cloud cannot hold
    const PointCloud scan = io::load_cloud(argv[1], {}, warnings);
    Array<int32_t, 1> chosen({count});
    ops::farthest_point_sample(scan.positions.view(), ops::Batch::single(count), chosen.view());
    Mesh few;
    few.vertices = select(scan, chosen.view());
    io::save(argv[3], few, Overwrite::refuse, {}, warnings);  // atomically, in the format of the extension
    std::printf("%s: %d of %d points\n", argv[3], static_cast<int>(count), static_cast<int>(scan.size()));
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
