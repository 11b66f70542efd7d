#pragma once
// The tables of the radiance study, from its rows.

#include "stipple/tasks/radiance_study/run_study.h"
#include "stipple/tasks/upsampling_study/report.h"

namespace stipple::tasks::study {

/// Of the seeds of one scene, grid and path.
struct RadianceMean {
    std::string scene;
    int64_t voxels = 0;
    radiance::StepPath path = radiance::StepPath::final;
    int64_t seeds = 0;
    double psnr = 0, psnr_deviation = 0;  // deviation: NaN for one seed
    double ssim = 0;
    double seconds = 0, seconds_deviation = 0;
    double coarse_seconds = 0, ms_per_fine_step = 0;
    double peak_bytes = 0;  // the most
    double in_box = 0, in_mask = 0, opaque = 0, kept = 0;
    double speedup = 1;  // of the whole training, against the first path of the scene and grid
    std::vector<radiance::StepPart> parts = {};
};

/// In the order in which scene, grid and path first appear.
std::vector<RadianceMean> radiance_means(const std::vector<RadianceRow>& rows);

/// How a path is called in tables: "reference", "+ fused Adam" and so on.
const char* title_of(radiance::StepPath path);

/// The log's table: what each change of the step gave, by scene and grid.
ReportTable radiance_table(const std::vector<RadianceMean>& means,
                           const std::function<radiance::TrainOptions(int64_t voxels)>& options);

/// Times of the parts of a fine step. Without rows where no path told them, as on a CPU.
ReportTable radiance_parts_table(const std::vector<RadianceMean>& means);

/// "04:05" of seconds, rounded.
std::string minutes_text(double seconds);

}  // namespace stipple::tasks::study
