#include "stipple/radiance/train.h"

namespace stipple::radiance {

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
    fine.weight_entropy_last = 0.001f;
    fine.weight_rgbper = 0.01f;
    fine.fast_color_thres = 1e-4f;
    fine.pg_scale = {1000, 2000, 3000, 4000};
    if (side > 160) fine.pg_scale.insert(fine.pg_scale.end(), {5000, 6000});
    return options;
}

TrainOptions small_options() {
    TrainOptions options = parity_options(96);
    options.coarse.N_iters = 400;
    options.coarse.N_rand = 2048;
    options.coarse.num_voxels = options.coarse.num_voxels_base = 48 * 48 * 48;
    options.fine.N_iters = 1600;
    options.fine.N_rand = 2048;
    options.fine.num_voxels_base = options.fine.num_voxels;
    options.fine.lrate_decay = 2;
    options.fine.pg_scale = {200, 400, 600};
    return options;
}

}  // namespace stipple::radiance
