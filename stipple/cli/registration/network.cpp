// stipple register --method learned: where the network comes from.

#include "stipple/cli/registration/options.h"
#include "stipple/core/program_files.h"
#include "stipple/tasks/learned_pose.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {

void add_network(const RegisterOptions& options, const Common& common, tasks::RegisterOptions& wanted) {
    const bool is_learned = wanted.method == tasks::RegisterMethod::learned;
    const bool is_asked = is_learned || wanted.method == tasks::RegisterMethod::automatic;
    STIPPLE_REQUIRE(is_asked || options.model.empty(), "--model is for --method learned");
    STIPPLE_REQUIRE(is_asked || options.sampled == 0, "--sampled is for --method learned");
    STIPPLE_REQUIRE(!is_learned || options.init.empty(), "--init is a start, and --method learned finds one: give one");
    const bool is_there = !options.model.empty() || is_file(tasks::find_weights(tasks::kPoseWeights));
    if (!is_asked || (!is_learned && !is_there)) return;
    const auto load = [model = options.model, sampled = options.sampled, device = common.device] {
        return std::make_shared<tasks::PoseNetwork>(
            tasks::load_pose_network(model, sampled, {.device = device, .batch = 1, .points = tasks::kPosePoints}));
    };
    auto network = std::make_shared<std::shared_ptr<tasks::PoseNetwork>>();
    if (is_learned || !options.model.empty()) *network = load();
    wanted.learned = [network, load](const PointCloud& source, const PointCloud& target) -> tasks::LearnedStart {
        if (!*network) *network = load();
        const tasks::PoseNetwork::Found found = (*network)->find(source, target);
        return {found.transform,
                fmt::format("PCRNet, {} iterations on {} and {} points, turned by {:.1f} degrees; then ICP",
                            (*network)->iterations(), grouped(found.source_points), grouped(found.target_points),
                            geometry::rotation_angle(found.transform) * (180 / M_PI))};
    };
}

}  // namespace stipple::cli
