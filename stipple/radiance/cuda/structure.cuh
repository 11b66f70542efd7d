#pragma once
// Bricks on the device. Included by .cu files only.

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/radiance/cuda/memory.cuh"
#include "stipple/radiance/march/bricks.h"
#include "stipple/radiance/train/brick_table.h"

namespace stipple::radiance::cuda {

/// BrickGrid::free by what is occupied now. `scratch`: as large, between passes.
void launch_free_bricks(const BrickGrid& bricks, uint8_t* free, uint8_t* scratch, cudaStream_t stream);

/// Bricks and which of their nodes are occupied.
struct Structure {
    GridShape shape;
    BrickTable numbers;
    DeviceArray<int32_t> table, place;
    DeviceArray<uint64_t> occupied, built;  // built: nodes that were occupied when the fine grid was
    DeviceArray<uint8_t> free, scratch;

    Structure() = default;
    Structure(MemoryMeter& meter, const GridShape& grid, BrickTable bricks)
        : shape(grid),
          numbers(std::move(bricks)),
          table(meter, numbers.table),
          place(meter, numbers.place),
          occupied(meter, numbers.stored()),
          built(meter, numbers.stored()),
          free(meter, table.count()),
          scratch(meter, table.count()) {}

    /// `free` is right after find_free.
    BrickGrid view() const {
        BrickGrid grid;
        grid.view = view_of(shape);
        const std::array<int32_t, 3> count = shape.bricks();
        for (size_t axis = 0; axis < 3; ++axis) grid.bricks[axis] = count[axis];
        grid.table = table.get();
        grid.occupied = occupied.get();
        grid.free = free.get();
        return grid;
    }
    /// After every change of `occupied`. The table stays where it is, so that recorded steps see it.
    void find_free(cudaStream_t stream) const { launch_free_bricks(view(), free.get(), scratch.get(), stream); }
    void keep_built(cudaStream_t stream) const {
        STIPPLE_CHECK_CUDA(cudaMemcpyAsync(built.get(), occupied.get(), static_cast<size_t>(occupied.bytes()),
                                           cudaMemcpyDeviceToDevice, stream));
    }
    int64_t nodes() const { return int64_t{numbers.stored()} * kBrickNodes; }
};

/// The most samples that a ray has in the box.
inline int32_t most_samples(const GridShape& grid, float step) {
    double square = 0;
    for (int axis = 0; axis < 3; ++axis) square += double{grid.box.extent(axis)} * grid.box.extent(axis);
    const double most = std::ceil(std::sqrt(square) / step) + 2;
    STIPPLE_REQUIRE(most < 65535, "rays of {} samples are too long", most);
    return static_cast<int32_t>(most);
}

}  // namespace stipple::radiance::cuda
