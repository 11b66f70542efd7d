#pragma once
// The names of what can be asked for.

#include <span>
#include <string_view>

namespace stipple::metrics {

/// pu_gan  each cloud to its own unit sphere; cd = mean d^2 + mean d^2, hd = max d^2 + max d^2; p2f in mesh units.
///         PU-GAN, PU-GCN, Dis-PU, PU-Flow, Grad-PU, RepKPU, PU-Gaussian
/// pudm    as given; cd and hd halved; p2f in mesh units. PUDM, PDANS, PUFM, PUFM++
/// raw     as given; every convention under its full name
enum class Protocol { pu_gan, pudm, raw };
inline constexpr const char* kProtocolWords[] = {"pu-gan", "pudm", "raw"};

Protocol protocol_by_name(std::string_view name);  // "pu-gan", "pudm", "raw"; throws Error{bad_argument}
std::string_view name_of(Protocol protocol);

/// What can be asked for beyond cd, hd and p2f.
enum class Extra {
    chamfer,     // the other conventions of the chamfer distance, and both directions
    hausdorff,   // the true Hausdorff distance, one-sided ones
    f_score,     // with precision and recall
    jsd,         // in the unit spheres of both clouds, whatever the protocol
    emd,         // by auction: quadratic in the points
    emd_exact,   // up to 4096 points
    surface,     // p2f deviation and maximum, and from the mesh to the prediction
    normals,     // normal consistency; needs normals of both clouds
    density,     // spacing and density of the prediction
    uniformity,  // PU-GAN's disks; needs a mesh
    nuc,         // needs a mesh
};

std::span<const Extra> all_extras();
Extra extra_by_name(std::string_view name);  // "f_score"; throws Error{bad_argument} that lists them
std::string_view name_of(Extra extra);

/// farthest  farthest points of five times as many uniform ones: as even as the truth of the usual test sets
/// uniform   independent points
enum class FloorSampling { farthest, uniform };

FloorSampling floor_sampling_by_name(std::string_view name);  // "farthest", "uniform"; throws Error{bad_argument}
std::string_view name_of(FloorSampling sampling);

}  // namespace stipple::metrics
