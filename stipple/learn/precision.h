#pragma once
// In which numbers a run computes. No torch here.
//
// | name         | O level | products       | weights | master weights, optimiser | loss scale |
// |--------------|---------|----------------|---------|---------------------------|------------|
// | fp32         | O0      | float32        | float32 | float32                   |            |
// | tf32         |         | tf32 on a GPU  | float32 | float32                   |            |
// | bf16         |         | bfloat16       | float32 | float32                   |            |
// | fp16         | O1      | float16        | float32 | float32                   | dynamic    |
// | fp16-weights | O2      | float16        | float16 | float32                   | dynamic    |
// | fp16-pure    | O3      | float16        | float16 | none, float16             | dynamic    |
//
// In all of them sums of products, statistics and parameters of batch norms, losses and moving averages are float32.

#include <cstdint>

namespace stipple::learn {

enum class Precision { fp32, tf32, bf16, fp16, fp16_weights, fp16_pure };
inline constexpr const char* kPrecisionWords[] = {"fp32", "tf32", "bf16", "fp16", "fp16-weights", "fp16-pure"};

/// Dynamic loss scale [Micikevicius et al. 2018]: gradients of float16 vanish below 6e-8, so the loss is multiplied
/// by as much as they can bear. Found too large, it is halved and the step is not made; after kGoodSteps good steps
/// in a row it is doubled.
struct LossScale {
    static constexpr double kFirst = 65536, kLeast = 1, kMost = 16777216;
    static constexpr int64_t kGoodSteps = 1000;
    double scale = kFirst;
    int64_t good_steps = 0;  // since it last changed

    /// After a step whose gradients were finite, or not. Returns false where they were not and the scale cannot be
    /// blamed: it was the least.
    bool observe(bool is_finite) {
        if (is_finite) {
            if (++good_steps >= kGoodSteps && scale < kMost) scale *= 2, good_steps = 0;
            return true;
        }
        const bool is_blamed = scale > kLeast;
        if (is_blamed) scale /= 2;
        good_steps = 0;
        return is_blamed;
    }
};

inline bool has_loss_scale(Precision precision) {
    return precision >= Precision::fp16;
}

}  // namespace stipple::learn
