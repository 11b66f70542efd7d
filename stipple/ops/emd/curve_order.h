#pragma once
// Sorts pairs of clouds along the Hilbert curve for emd, on CUDA: see auction.h. Included by .cu files only.

#include "stipple/ops/common/cuda_launch.h"

namespace stipple::ops::cuda {

/// Copies of both clouds of every pair, sorted along the curve, and the mapping back to rows.
class OrderedPairs {
public:
    OrderedPairs(const Clouds& a, const Clouds& b, const DeviceBatch& batch, cudaStream_t stream);

    const float* a() const { return points_.get(); }                    // [rows, 3]
    const float* b() const { return points_.get() + 3 * batch_.rows; }  // [rows, 3]
    const uint32_t* keys_a() const { return keys_.get(); }              // [rows], ascending in every cloud
    const uint32_t* keys_b() const { return keys_.get() + batch_.rows; }
    int32_t* matching() const { return matching_.get(); }  // [rows], for the solver to fill

    /// Writes the matching in terms of the rows of the caller's clouds.
    void translate(int32_t* matching) const;

private:
    DeviceBatch batch_;
    cudaStream_t stream_;
    Scratch<float> points_;
    Scratch<uint32_t> keys_;
    Scratch<int32_t> order_, matching_;  // order: of a, then of b, the index in the cloud
};

}  // namespace stipple::ops::cuda
