#include "stipple/geometry/mesh_view.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

std::string message_of(const geometry::MeshView& mesh) {
    try {
        geometry::require_mesh("test", mesh);
        return "";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
        return error.message();
    }
}

TEST(GeometryMeshView, AcceptsMeshesAndNamesWhatIsWrong) {
    Mesh mesh = random_mesh(30);
    EXPECT_EQ(message_of(mesh), "");
    mesh.triangles.data()[4] = 30;
    EXPECT_EQ(message_of(mesh), "test: face 1 has vertex 30 of 30");
    mesh.triangles.data()[4] = -1;
    EXPECT_EQ(message_of(mesh), "test: face 1 has vertex -1 of 30");
    mesh.triangles.data()[4] = 7;
    mesh.vertices.positions.data()[3 * 7 + 2] = NAN;
    EXPECT_EQ(message_of(mesh), "test: vertex 7 of face 1 is not finite");
    const float* place = mesh.vertices.positions.data();
    const int32_t* corner = mesh.triangles.data();
    EXPECT_EQ(message_of({View<const float, 2>(place, {9, 2}), View<const int32_t, 2>(corner, {1, 3})}),
              "test: vertices must be [n, 3] without gaps, got [9, 2]");
    EXPECT_EQ(message_of({View<const float, 2>(place, {9, 3}), View<const int32_t, 2>(corner, {1, 4})}),
              "test: triangles must be [m, 3] without gaps, got [1, 4]");
    EXPECT_EQ(message_of({View<const float, 2>(place, {9, 3}),
                          View<const int32_t, 2>(corner, {1, 3}, Device{DeviceType::cuda, 0})}),
              "test: vertices on cpu, triangles on cuda:0");
    EXPECT_EQ(
        message_of({View<const float, 2>(nullptr, {1, 3}), View<const int32_t, 2>(nullptr, {int64_t{1} << 31, 3})}),
        "test: 1 vertices and 2147483648 faces, at most 2147483647");
}

}  // namespace
}  // namespace stipple::test
