#include "stipple/learn/sampling/pose_terms.h"

#include <cmath>
#include <torch/torch.h>

namespace stipple::learn {

using torch::Tensor;

namespace {

constexpr double kDegree = 0.017453292519943295;

/// x ^ (x >> bits) with zeros shifted in: torch shifts the sign in.
Tensor mixed_right(const Tensor& x, int64_t bits) {
    const int64_t mask = (int64_t{1} << (64 - bits)) - 1;
    return x.bitwise_xor(x.__rshift__(bits).bitwise_and(mask));
}

}  // namespace

Tensor uniform_of(const Tensor& numbers, int64_t columns, uint64_t seed) {
    // SplitMix64 of the place of each number: products of int64 wrap around.
    const auto signed_of = [](uint64_t bits) { return static_cast<int64_t>(bits); };
    const Tensor column = torch::arange(columns, numbers.options());
    Tensor x = numbers.unsqueeze(1) * columns + column;
    x = (x + 1) * signed_of(0x9E3779B97F4A7C15ull) + signed_of(seed * 0xD1342543DE82EF95ull);
    x = mixed_right(x, 30) * signed_of(0xBF58476D1CE4E5B9ull);
    x = mixed_right(x, 27) * signed_of(0x94D049BB133111EBull);
    x = mixed_right(x, 31);
    return x.bitwise_and((int64_t{1} << 24) - 1).to(torch::kFloat32) * 0x1p-24f;
}

PoseTensors draw_poses(const Tensor& numbers, const PoseOptions& options, uint64_t seed) {
    const Tensor centred = 2 * uniform_of(numbers, 6, seed) - 1;
    const Tensor angles = centred.slice(1, 0, 3) * (options.angle * kDegree);
    const Tensor c = angles.cos(), s = angles.sin();
    const Tensor cx = c.select(1, 0), cy = c.select(1, 1), cz = c.select(1, 2);
    const Tensor sx = s.select(1, 0), sy = s.select(1, 1), sz = s.select(1, 2);
    const Tensor entries = torch::stack({cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx,  //
                                         sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx,  //
                                         -sy, cy * sx, cy * cx},
                                        1);
    return {entries.reshape({-1, 3, 3}), centred.slice(1, 3, 6) * options.shift};
}

Tensor moved_by(const PoseTensors& poses, const Tensor& points) {
    const int64_t clouds = poses.rotation.size(0);
    return (torch::bmm(points.reshape({clouds, -1, 3}), poses.rotation.transpose(1, 2)) +
            poses.translation.unsqueeze(1))
        .reshape({-1, 3});
}

Tensor rotation_angles(const Tensor& a, const Tensor& b) {
    const torch::NoGradGuard no_gradients;
    // 2 asin(|A - B|_F / sqrt 8): exact for small angles, where the arc cosine of a trace is not.
    const Tensor difference = (a - b).to(torch::kFloat64).square().sum({1, 2}).sqrt() / std::sqrt(8.0);
    return 2 * difference.clamp(0, 1).asin() / kDegree;
}

PoseTerms pose_terms(const PoseTensors& found, const PoseTensors& truth) {
    // |A B^T - I|_F = |A - B|_F for rotations.
    return {(found.rotation - truth.rotation).to(torch::kFloat64).square().sum({1, 2}).mean(),
            (found.translation - truth.translation).to(torch::kFloat64).square().sum(1).mean()};
}

}  // namespace stipple::learn
