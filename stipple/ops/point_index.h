#pragma once
// PointIndex: built once, queried many times by knn, radius_search and ball_query.
//
// CPU: a balanced kd-tree with an implicit layout (point_tree.h). CUDA: a linear bounding-volume hierarchy over
// Hilbert-ordered points, built on the device; for c != 3 no hierarchy but tiles, which a search of m queries goes
// through one by one: O(m n). The index copies the points it needs: the caller's array may go.

#include <memory>

#include "stipple/ops/clouds.h"

namespace stipple::ops {

namespace cpu {
struct PointTree;
}
namespace cuda {
struct PointHierarchy;
}

class PointIndex {
public:
    /// points [n, c], 1 <= c <= 32, any batch, CPU or CUDA. c = 3 is the fast path; other dimensions serve neighbours
    /// in feature space. A point with a non-finite coordinate is never found as a neighbour. Throws Error{bad_argument}
    /// for other shapes, Error{out_of_memory}. O(n log n) time, O(n) memory. Copies share the tree; it is never
    /// changed, so any number of threads may query it. On CUDA the last copy gives the memory back in the order of
    /// `stream`: the stream must outlive the index, and searches on other streams must have ended by then.
    explicit PointIndex(const Clouds& points, Stream stream = {});

    const Batch& batch() const { return batch_; }
    int64_t dimension() const { return dimension_; }
    Device device() const { return device_; }

    const cpu::PointTree& on_cpu() const { return *cpu_; }
    const cuda::PointHierarchy& on_cuda() const { return *cuda_; }

private:
    Batch batch_;
    int64_t dimension_ = 0;
    Device device_;
    std::shared_ptr<const cpu::PointTree> cpu_;
    std::shared_ptr<const cuda::PointHierarchy> cuda_;
};

}  // namespace stipple::ops
