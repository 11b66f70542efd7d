#pragma once
// The CUDA launchers behind WindingIndex, winding_number, signed_distance and point_areas. Arguments are checked
// already.

#include "stipple/geometry/winding/tree.h"

namespace stipple::geometry::cuda {

struct WindingHierarchy;

/// Waits for the input on the stream and builds the tree of the CPU from it, so that both take the same decisions.
std::shared_ptr<const WindingHierarchy> build_winding(const MeshView& mesh, Stream stream);
std::shared_ptr<const WindingHierarchy> build_winding(View<const float, 2> points, View<const float, 2> normals,
                                                      View<const float, 1> areas, float softening, Stream stream);

void winding_number(const WindingHierarchy& tree, View<const float, 2> queries, View<float, 1> winding, float accuracy,
                    Stream stream);

/// Negates the finite distances of queries inside.
void negate_inside(const WindingHierarchy& tree, View<const float, 2> queries, View<float, 1> distances, float accuracy,
                   Stream stream);
void is_inside(const WindingHierarchy& tree, View<const float, 2> queries, View<uint8_t, 1> inside, float accuracy,
               Stream stream);

/// distances_sq and neighbours [rows, k + 1] of knn for the points from `first` on; normals may be empty.
void point_areas(View<const float, 2> distances_sq, View<const int32_t, 2> neighbours, View<const float, 2> normals,
                 int64_t first, View<float, 1> areas, Stream stream);

}  // namespace stipple::geometry::cuda
