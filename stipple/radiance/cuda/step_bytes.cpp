#include "stipple/radiance/cuda/step_bytes.h"

namespace stipple::radiance::cuda {
namespace {

// Of the structures that march/bricks.h and step.cuh have.
constexpr int64_t kNumber = 4;                        // a float, an int32
constexpr int64_t kOccupancy = kNumber + 8;           // a brick's place in the table, its bits
constexpr int64_t kCornerTable = 8 * kNumber;         // bricks of the eight nodes about a place
constexpr int64_t kFeatureRow = kFeatures * kNumber;  // of a node
constexpr int64_t kColour = 4 * kNumber;              // with the weight
constexpr int64_t kViewRow = kViewCode * kNumber;     // of a ray
constexpr int64_t kHalfNetwork = 2 * (int64_t{kHidden} * 48 + int64_t{kHidden} * kHidden + int64_t{16} * kHidden) +
                                 (kHidden + 3) * kNumber;  // as colour.cuh pads it, and the biases
constexpr int64_t kAdam = 2 * 3 * kNumber;                 // value and moments, read and written

int64_t march_bytes(const StepCounts& c) {
    const int64_t drawn = 2 * kNumber + c.camera_bytes;  // place in the list, pixel, camera
    return c.rays * (drawn + c.ray_bytes + kViewRow + kNumber) + c.in_box * kOccupancy +
           c.in_mask * (kCornerTable + 8 * kNumber) + c.opaque * (2 + 2 * kNumber);
}

int64_t place_bytes(const StepCounts& c) {
    return c.rays * 3 * kNumber + kNumber;
}

/// A lane takes four features: three lanes look for the corners.
int64_t gather_bytes(const StepCounts& c) {
    return c.rays * (c.ray_bytes + 2 * kNumber) + c.opaque * kNumber +
           c.kept * (2 + 3 * kCornerTable + 8 * kFeatureRow + kFeatureRow + 2 * kNumber);
}

int64_t colour_bytes(const StepCounts& c) {
    return c.forward_blocks * kHalfNetwork + c.kept * (kFeatureRow + kNumber + kViewRow + 3 * kNumber);
}

int64_t composite_bytes(const StepCounts& c) {
    return c.rays * (c.ray_bytes + 3 * kNumber) + c.kept * 3 * kColour +
           c.opaque * (2 + 2 * kNumber + kCornerTable + 8 * (2 * c.gradient_bytes + 1));
}

int64_t colour_back_bytes(const StepCounts& c) {
    return c.back_blocks * (kHalfNetwork + kNetworkNumbers * kNumber) +
           c.kept * (kFeatureRow + kColour + kNumber + kViewRow + kFeatureRow);
}

int64_t scatter_bytes(const StepCounts& c) {
    return c.rays * (c.ray_bytes + 2 * kNumber) + c.opaque * kNumber +
           c.kept * (2 + 3 * kCornerTable + kFeatureRow + 8 * (2 * kFeatures * c.gradient_bytes + 1));
}

int64_t grids_bytes(const StepCounts& c) {
    return c.stored_bricks + c.touched_bricks * (1 + int64_t{kBrickNodes} * (1 + kFeatures) * c.gradient_bytes) +
           c.updated_densities * (c.gradient_bytes + kAdam) + c.updated_feature_rows * 4 * (c.gradient_bytes + kAdam);
}

int64_t network_bytes(const StepCounts& c) {
    return kNetworkNumbers * (c.back_blocks * kNumber + kAdam + 2);
}

int64_t advance_bytes(const StepCounts& c) {
    return c.rays * kNumber + 2 * c.state_bytes;
}

struct PartRule {
    const char* name;
    int64_t (*bytes)(const StepCounts& counts);
    int64_t operations_of_sample;
};
constexpr PartRule kRules[] = {{"march", march_bytes, 0},
                               {"place", place_bytes, 0},
                               {"gather features", gather_bytes, 0},
                               {"colour", colour_bytes, kForwardOperations},
                               {"composite, densities back", composite_bytes, 0},
                               {"colour back", colour_back_bytes, kBackOperations},
                               {"scatter features", scatter_bytes, 0},
                               {"Adam of grids", grids_bytes, 0},
                               {"Adam of network", network_bytes, 0},
                               {"advance", advance_bytes, 0}};

}  // namespace

void count_traffic(const StepCounts& counts, std::vector<StepPart>& parts) {
    for (StepPart& part : parts) {
        for (const PartRule& rule : kRules) {
            if (part.name != rule.name) continue;
            part.bytes = static_cast<double>(rule.bytes(counts));
            part.operations = static_cast<double>(rule.operations_of_sample * counts.kept);
        }
    }
}

}  // namespace stipple::radiance::cuda
