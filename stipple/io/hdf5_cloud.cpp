#include <cmath>
#include <cstring>

#include "stipple/io/conversion.h"
#include "stipple/io/hdf5.h"

namespace stipple::io {
namespace {

bool keeps(const Attribute& attribute) {
    if (attribute.name() == "normal") return attribute.dtype() == DType::f32 && attribute.components() == 3;
    return attribute.name() == "label" && attribute.components() == 1 && is_integer(attribute.dtype()) &&
           all_whole(attribute, -2147483648.0, 2147483647.0);
}

}  // namespace

void save_hdf5_cloud(const std::string& path, const Mesh& mesh, Overwrite overwrite, Warnings& warnings) {
    const PointCloud& cloud = mesh.vertices;
    warn_left_out(mesh, "HDF5", false, keeps, warnings);
    CloudSet set;
    set.points = Array<float, 3>({1, cloud.size(), 3});
    bool rounded = false;
    for (int64_t i = 0; i < 3 * cloud.size(); ++i) {
        const double world = cloud.origin[i % 3] + cloud.positions.data()[i];
        set.points.data()[i] = static_cast<float>(world);
        rounded |= std::isfinite(world) && static_cast<double>(set.points.data()[i]) != world;
    }
    if (rounded) warnings.push_back("HDF5 holds float32 coordinates: the world coordinates were rounded");
    if (const Attribute* normal = find(cloud.attributes, "normal"); normal && keeps(*normal)) {
        set.normals = Array<float, 3>({1, cloud.size(), 3});
        std::memcpy(set.normals.data(), normal->data(), static_cast<size_t>(12 * cloud.size()));
    }
    if (const Attribute* label = find(cloud.attributes, "label"); label && keeps(*label)) {
        set.parts = Array<int32_t, 2>({1, cloud.size()});
        for (int64_t i = 0; i < cloud.size(); ++i) set.parts.data()[i] = static_cast<int32_t>(label->value(i));
    }
    save_hdf5(path, set, overwrite);
}

}  // namespace stipple::io
