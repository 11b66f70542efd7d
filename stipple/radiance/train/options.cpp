#include "stipple/radiance/train.h"

namespace stipple::radiance {

const char* name_of(StepPath path) {
    return kStepPathWords[static_cast<int>(path)];
}

std::optional<StepPath> step_path_by_name(std::string_view name) {
    for (int i = 0; i < kStepPaths; ++i)
        if (name == kStepPathWords[i]) return static_cast<StepPath>(i);
    return std::nullopt;
}

void require_path(StepPath path, Device device) {
    STIPPLE_REQUIRE(path == StepPath::final || device.type != DeviceType::cpu,
                    "path={}: the step-by-step paths are there on CUDA alone", name_of(path));
}

Background usual_background(const Scene& scene) {
    return scene.has_alpha && !scene.alpha_is_unknown ? Background::white : Background::learned;
}

TrainOptions parity_options(int64_t side) {
    TrainOptions options;
    StageOptions& coarse = options.coarse;
    coarse.N_iters = 5000;
    coarse.num_voxels = coarse.num_voxels_base = 1024000;
    coarse.alpha_init = 1e-6f;
    coarse.weight_entropy_last = 0.01f;
    coarse.weight_rgbper = 0.1f;
    coarse.fast_color_thres = 1e-7f;
    StageOptions& fine = options.fine;
    fine.N_iters = 20000;
    fine.num_voxels = side * side * side;
    fine.num_voxels_base = 160 * 160 * 160;
    fine.alpha_init = 1e-2f;
    // Adam moves every texel by as much as its rate however little is wrong; the coarse stage has come near already.
    fine.lrate_environment = 0.02f;
    fine.weight_entropy_last = 0.001f;
    fine.weight_rgbper = 0.01f;
    fine.fast_color_thres = 1e-4f;
    fine.pg_scale = {1000, 2000, 3000, 4000};
    if (side > 160) fine.pg_scale.insert(fine.pg_scale.end(), {5000, 6000});
    return options;
}

TrainOptions fast_options() {
    TrainOptions options = parity_options(256);
    options.coarse.N_iters = 2000;
    StageOptions& fine = options.fine;
    fine.N_iters = 9000;
    fine.lrate_decay = 10;
    fine.pg_scale = {300, 600, 900, 1200, 1500, 1800};
    // Fewer samples get a colour, and haze goes sooner: a step costs two thirds.
    fine.fast_color_thres = 1e-3f;
    fine.weight_entropy_last = 0.005f;
    return options;
}

TrainOptions quality_options() {
    TrainOptions options = parity_options(320);
    options.fine.N_iters = 30000;
    options.fine.lrate_decay = 25;
    options.fine.pg_scale = {1000, 2000, 3000, 4000, 5000, 6000, 7000};
    return options;
}

TrainOptions small_options() {
    TrainOptions options = parity_options(96);
    options.coarse.N_iters = 800;
    options.coarse.N_rand = 1024;
    options.coarse.num_voxels = options.coarse.num_voxels_base = 48 * 48 * 48;
    StageOptions& fine = options.fine;
    fine.N_iters = 1500;
    fine.N_rand = 1024;
    fine.num_voxels_base = fine.num_voxels;
    fine.lrate_decay = 2;
    fine.pg_scale = {250, 500, 750};
    fine.fast_color_thres = 1e-3f;
    fine.weight_entropy_last = 0.005f;
    fine.refresh = 200;
    return options;
}

}  // namespace stipple::radiance
