#include "stipple/learn/upsampling/patch_options.h"

#include "stipple/core/error.h"

namespace stipple::learn {

const Fields& patch_fields() {
    using Options = PatchOptions;
    static const Fields fields = {
        field<&Options::queries>("queries", "Candidates of a patch that are moved onto the surface")
            .between(1, 1 << 20),
        field<&Options::truth>("truth", "Points of the surface that they should cover").between(1, 1 << 20),
        field<&Options::pools>("pools", "Independent sets of points of each mesh or scan").between(2, 64),
        field<&Options::samples>("samples", "Points of each of these sets").between(16, 1 << 24),
        field<&Options::scans>("scans", "Virtual scans of each mesh, each trained on as often as the mesh")
            .between(0, 16),
        field<&Options::region>("region", "Scans of more points are used by regions of so many").to(1 << 24),
        field<&Options::inner_share>("inner_share", "The share of a patch, about its centre, where queries lie")
            .above(0)
            .to(1),
        field<&Options::truth_radius>("truth_radius", "The share of their radius within which the truth lies")
            .above(0)
            .to(2),
        field<&Options::cloud_min>("cloud_min", "The fewest points of a cloud that patches are cut from"),
        field<&Options::cloud_max>("cloud_max", "The most points of a cloud that patches are cut from"),
        field<&Options::random_share>("random_share", "The share of clouds whose points are drawn at random")
            .between(0, 1),
        field<&Options::gradient_share>("gradient_share", "The share of clouds whose density falls in one direction")
            .between(0, 1),
        field<&Options::scan_share>("scan_share", "The share of clouds that look like those of a scanner")
            .between(0, 1),
        field<&Options::voxel_share>("voxel_share", "The share of clouds with one point in each cell of a grid")
            .between(0, 1),
        field<&Options::noise_share>("noise_share", "The share of noisy clouds").between(0, 1),
        field<&Options::noise_max>("noise_max", "The largest standard deviation of their noise, of radius 1")
            .between(0, 1),
        field<&Options::scan_noise_share>("scan_noise_share", "The share of noisy clouds of virtual scans")
            .between(0, 1),
        field<&Options::mixed_share>("mixed_share", "The share of clouds of virtual scans with mixed pixels")
            .between(0, 1),
        field<&Options::scale_min>("scale_min", "The least factor of the spacing that a patch is seen in").above(0),
        field<&Options::scale_max>("scale_max", "The largest factor of the spacing").to(100),
        field<&Options::midpoint_share>("midpoint_share", "The share of queries between a point and a neighbour")
            .between(0, 1),
        field<&Options::input_share>("input_share", "The share of queries that are input points").between(0, 1),
        field<&Options::query_noise_share>("query_noise_share", "The share of queries that are moved by noise")
            .between(0, 1),
        field<&Options::query_noise>("query_noise", "The largest standard deviation of that noise")
            .unit("spacings")
            .between(0, 100)};
    return fields;
}

void validate(const PatchOptions& o, int64_t points) {
    const auto require = [](bool holds, const char* message) {
        if (!holds) throw Error(ErrorCode::bad_config, message);
    };
    try {
        check_fields(patch_fields(), &o, [](const Field& field) { return std::string("patch.") + field.name; });
    } catch (const Error& error) {
        throw Error(ErrorCode::bad_config, error.message());
    }
    require(o.region >= o.samples, "patch.region must be patch.samples to 16777216");
    require(points >= 2 && points <= o.cloud_min, "data.points must be 2 to patch.cloud_min");
    require(o.cloud_min <= o.cloud_max, "patch.cloud_min must not be above cloud_max");
    require(o.cloud_max <= o.samples / 2, "patch.samples must be at least twice patch.cloud_max");
    require(o.cloud_min <= o.samples / kThinnedShare, "patch.samples must be at least four times patch.cloud_min");
    require(o.random_share + o.gradient_share + o.scan_share + o.voxel_share <= 1 + 1e-9,
            "the sum of patch.random_share, gradient_share, scan_share and voxel_share must be 0 to 1");
    require(o.midpoint_share + o.input_share <= 1 + 1e-9,
            "the sum of patch.midpoint_share and input_share must be 0 to 1");
    require(o.scale_min <= o.scale_max, "patch.scale_max must be at least patch.scale_min");
}

}  // namespace stipple::learn
