#include "stipple/cli/common/orient.h"

#include "stipple/geometry/normals.h"

namespace stipple::cli {

std::string orient_normals(const PointCloud& cloud, View<float, 2> normals, int k) {
    if (const auto& sensor = cloud.facts.viewpoint) {
        geometry::orient_towards(
            cloud.positions.view(), normals,
            {(*sensor)[0] - cloud.origin[0], (*sensor)[1] - cloud.origin[1], (*sensor)[2] - cloud.origin[2]});
        return "viewpoint";
    }
    geometry::orient_consistently(cloud.positions.view(), normals, k);
    return "mst";
}

}  // namespace stipple::cli
