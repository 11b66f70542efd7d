#include "stipple/radiance/cuda/step_bytes.h"

#include <gtest/gtest.h>

namespace stipple::radiance::cuda {
namespace {

/// Parts by the names of launch_fine_step, and one that it does not have.
std::vector<StepPart> counted(const StepCounts& counts) {
    std::vector<StepPart> parts;
    for (const char* name : {"march", "place", "gather features", "colour", "composite, densities back", "colour back",
                             "scatter features", "Adam of grids", "Adam of network", "advance", "other"}) {
        parts.push_back({name, 1});
    }
    count_traffic(counts, parts);
    return parts;
}

double bytes_of(const StepCounts& counts, const char* name) {
    for (const StepPart& part : counted(counts)) {
        if (part.name == name) return part.bytes;
    }
    return -1;
}

/// A grid of 8 x 4 x 4 nodes, two bricks of which one was touched; a ray with five samples in the box, four in the
/// mask, three opaque, two with a colour.
StepCounts one_ray() {
    StepCounts counts;
    counts.rays = 1;
    counts.in_box = 5;
    counts.in_mask = 4;
    counts.opaque = 3;
    counts.kept = 2;
    counts.stored_bricks = 2;
    counts.touched_bricks = 1;
    counts.updated_densities = 20;
    counts.updated_feature_rows = 30;
    counts.forward_blocks = 2;
    counts.back_blocks = 1;
    counts.ray_bytes = 100;
    counts.camera_bytes = 70;
    counts.state_bytes = 40;
    return counts;
}

TEST(RadianceStepBytes, OfASmallGrid) {
    const StepCounts c = one_ray();
    // Drawing 78, record 100, code of the view 28 numbers, number of kept; 12 a sample in the box, 64 in the mask, 10
    // opaque.
    EXPECT_EQ(bytes_of(c, "march"), 78 + 100 + 112 + 4 + 5 * 12 + 4 * 64 + 3 * 10);
    EXPECT_EQ(bytes_of(c, "place"), 16);
    // Index, three times 8 bricks, 8 nodes of 48 bytes, the features, ray and weight.
    EXPECT_EQ(bytes_of(c, "gather features"), 108 + 3 * 4 + 2 * (2 + 96 + 384 + 48 + 8));
    const int64_t network = 2 * (128 * 48 + 128 * 128 + 16 * 128) + 131 * 4;
    EXPECT_EQ(bytes_of(c, "colour"), 2 * network + 2 * (48 + 4 + 112 + 12));
    EXPECT_EQ(bytes_of(c, "composite, densities back"), 112 + 2 * 48 + 3 * (10 + 32 + 8 * 9));
    EXPECT_EQ(bytes_of(c, "colour back"), network + kNetworkNumbers * 4 + 2 * (48 + 16 + 4 + 112 + 48));
    EXPECT_EQ(bytes_of(c, "scatter features"), 108 + 3 * 4 + 2 * (2 + 96 + 48 + 8 * (96 + 1)));
    // A brick is 64 nodes of 13 numbers; an update reads and writes value and two moments, and clears the gradient.
    EXPECT_EQ(bytes_of(c, "Adam of grids"), 2 + 1 + 64 * 13 * 4 + (20 + 30 * 4) * 28);
    EXPECT_EQ(bytes_of(c, "Adam of network"), kNetworkNumbers * (4 + 24 + 2));
    EXPECT_EQ(bytes_of(c, "advance"), 84);
    EXPECT_EQ(bytes_of(c, "other"), 0);
}

TEST(RadianceStepBytes, DeterministicGradientsAreTwiceAsLarge) {
    StepCounts c = one_ray();
    const double plain = bytes_of(c, "Adam of grids"), scattered = bytes_of(c, "scatter features");
    c.gradient_bytes = 8;
    EXPECT_EQ(bytes_of(c, "Adam of grids") - plain, 64 * 13 * 4 + (20 + 30 * 4) * 4);
    EXPECT_EQ(bytes_of(c, "scatter features") - scattered, 2 * 8 * 96);
}

TEST(RadianceStepBytes, OperationsOfTheNetwork) {
    const std::vector<StepPart> parts = counted(one_ray());
    EXPECT_EQ(kForwardOperations, 2 * (40 * 128 + 128 * 128 + 128 * 3));
    EXPECT_EQ(parts[3].operations, 2.0 * kForwardOperations);
    EXPECT_EQ(parts[5].operations, 2.0 * kBackOperations);
    EXPECT_EQ(parts[0].operations, 0);
    EXPECT_LT(kBackOperations, 2 * kForwardOperations);  // directions have no gradient
}

}  // namespace
}  // namespace stipple::radiance::cuda
