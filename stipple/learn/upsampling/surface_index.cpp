#include "stipple/learn/upsampling/surface_index.h"

#include <cmath>
#include <torch/torch.h>

#include "stipple/geometry/closest_point.h"
#include "stipple/learn/functions/tensors.h"

namespace stipple::learn {
namespace {

using torch::Tensor;

constexpr double kCell = 4;  // shapes have radius 1

/// About 0, so that coordinates stay small and exact.
std::array<float, 3> cell_of(int64_t shape, int64_t side) {
    const double middle = 0.5 * static_cast<double>(side - 1);
    const int64_t at[] = {shape % side, shape / side % side, shape / (side * side)};
    std::array<float, 3> cell;
    for (size_t axis = 0; axis < 3; ++axis)
        cell[axis] = static_cast<float>(kCell * (static_cast<double>(at[axis]) - middle));
    return cell;
}

int64_t side_for(size_t shapes) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(std::cbrt(static_cast<double>(shapes)) - 1e-9)));
}

geometry::MeshIndex index_of(const SurfaceSet& set, int64_t side, torch::Device device) {
    int64_t vertices = 0, faces = 0;
    for (const SurfaceShape& shape : set.shapes) vertices += shape.mesh.vertices.size(), faces += shape.mesh.faces();
    const Tensor positions = torch::empty({vertices, 3}), corners = torch::empty({faces, 3}, torch::kInt32);
    auto* position = positions.data_ptr<float>();
    auto* corner = corners.data_ptr<int32_t>();
    int64_t first = 0;
    for (size_t s = 0; s < set.shapes.size(); ++s) {
        const Mesh& mesh = set.shapes[s].mesh;
        const std::array<float, 3> cell = cell_of(static_cast<int64_t>(s), side);
        for (int64_t i = 0; i < 3 * mesh.vertices.size(); ++i)
            *position++ = mesh.vertices.positions.data()[i] + cell[static_cast<size_t>(i % 3)];
        for (int64_t i = 0; i < 3 * mesh.faces(); ++i)
            *corner++ = static_cast<int32_t>(first + mesh.triangles.data()[i]);
        first += mesh.vertices.size();
    }
    const Tensor there = positions.to(device), corners_there = corners.to(device);
    return geometry::MeshIndex({view_of<const float, 2>(there), view_of<const int32_t, 2>(corners_there)},
                               current_stream(there));
}

/// Rows of vectors [patches, m, 3] times a matrix of each patch [patches, 3, 3]. Not by matmul, which a GPU may round
/// to 10 bits.
Tensor times(const Tensor& rows, const Tensor& matrices) {
    Tensor product = rows.narrow(2, 0, 1) * matrices.narrow(1, 0, 1);
    for (int64_t i = 1; i < 3; ++i) product = product + rows.narrow(2, i, 1) * matrices.narrow(1, i, 1);
    return product;
}

}  // namespace

SurfaceIndex::SurfaceIndex(const SurfaceSet& set, torch::Device device)
    : side_(side_for(set.shapes.size())), index_(index_of(set, side_, device)) {}

void SurfaceIndex::write_frame(int64_t shape, const PatchFrame& frame, float* numbers) const {
    const std::array<float, 3> cell = cell_of(shape, side_);
    std::copy_n(frame.rotation.begin(), 9, numbers);
    numbers[9] = frame.scale;
    for (size_t axis = 0; axis < 3; ++axis) numbers[10 + axis] = frame.centre[axis] + cell[axis];
}

Tensor SurfaceIndex::closest(const Tensor& positions, const Tensor& frames) const {
    const torch::NoGradGuard no_gradients;
    const int64_t patches = frames.size(0);
    STIPPLE_REQUIRE(positions.dim() == 3 && positions.size(0) == patches && frames.size(1) == kFrameNumbers,
                    "closest points of {} clouds in {} frames", positions.size(0), patches);
    const Tensor rotation = frames.narrow(1, 0, 9).reshape({patches, 3, 3}),
                 scale = frames.narrow(1, 9, 1).reshape({patches, 1, 1}),
                 centre = frames.narrow(1, 10, 3).reshape({patches, 1, 3});
    const Tensor placed = (times(positions.detach(), rotation) * scale + centre).reshape({-1, 3}).contiguous();
    const Tensor found = torch::empty_like(placed);
    geometry::ClosestPoints nearest;
    nearest.points = view_of<float, 2>(found);
    geometry::closest_point(index_, view_of<const float, 2>(placed), nearest, current_stream(placed));
    const Tensor offset = (found - placed).reshape(positions.sizes()) / scale;
    return positions.detach() + times(offset, rotation.transpose(1, 2));
}

}  // namespace stipple::learn
