#pragma once
// How training of radiance fields became fast: the same fields trained by each path of a step (radiance/train.h),
// scored and timed. Each field's row is stored as soon as it is trained, so that a study that was killed goes on.

#include <functional>

#include "stipple/radiance/train.h"

namespace stipple::tasks::study {

struct RadianceScene {
    std::string name, folder;
};

struct RadiancePlan {
    std::vector<RadianceScene> scenes;
    std::vector<int64_t> voxels;  // along an edge of a cube with as many
    std::vector<radiance::StepPath> paths;
    uint64_t first_seed = 0;
    int64_t seeds = 3;
    Device device;
    std::string folder;      // results.csv and parts.csv go there
    bool again = false;      // rows that are there do not count
    int profile_steps = 50;  // after training, for the times of parts; not counted in any other time

    std::function<radiance::TrainOptions(int64_t voxels)> options;
    std::function<radiance::Scene(const std::string& folder)> load;  // with test photographs
    std::string load_settings = {};                                  // what load does to them, in words
    std::function<void(int64_t steps)> advance = {};                 // so many more of radiance_steps() are done
    std::function<void(const std::string& line)> report = {};        // a field is done
};

/// A trained field.
struct RadianceRow {
    std::string scene;
    int64_t voxels = 0;
    radiance::StepPath path = radiance::StepPath::final;
    uint64_t seed = 0;
    std::string settings =
        {};  // all of them, photographs and device: a row that is stored counts while they are the same
    double psnr = 0, ssim = 0;  // of the test photographs
    double seconds = 0;         // box, coarse stage, fine stage, packing; without reading pictures
    double coarse_seconds = 0, ms_per_fine_step = 0;
    int64_t peak_bytes = 0;                                // of own allocations on the device
    double in_box = 0, in_mask = 0, opaque = 0, kept = 0;  // samples of a fine step
    std::vector<radiance::StepPart> parts = {};            // of a fine step; empty on a CPU
};

/// Every option by its name, in one line.
std::string settings_text(const radiance::TrainOptions& options);

/// results.csv, without the parts, and parts.csv.
std::string radiance_rows_to_csv(const std::vector<RadianceRow>& rows);
std::string radiance_parts_to_csv(const std::vector<RadianceRow>& rows);
/// Throws Error{bad_file} with the path for anything else. A file of parts that is missing leaves them out.
std::vector<RadianceRow> load_radiance_rows(const std::string& folder);

/// Steps of all fields.
int64_t radiance_steps(const RadiancePlan& plan);

/// Rows by scene, voxels, path and seed, the last running fastest. Only what is not stored is trained, and a scene is
/// read only for that. Throws what training throws, Error{bad_file} for a scene without test photographs,
/// Error{cannot_write}; can be interrupted.
std::vector<RadianceRow> run_radiance_study(const RadiancePlan& plan);

}  // namespace stipple::tasks::study
