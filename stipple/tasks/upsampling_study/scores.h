#pragma once
// The scores of a study: those of `stipple metrics`, of one output and in the mean.

#include <array>

#include "stipple/tasks/upsampling_study/inputs.h"

namespace stipple::tasks::study {

struct ScoreInfo {
    const char* name;   // in files, and as `stipple metrics` calls it: "cd_raw"
    const char* title;  // above a column: "CD raw"
    double scale;       // of printed values
    int digits;         // of printed values, after the point
};
constexpr size_t kScoreCount = 7;
/// cd, hd, cd_raw, hd_raw, p2f, uniformity_1.0, nuc_1.0.
constexpr std::array<ScoreInfo, kScoreCount> kScores = {{{"cd", "CD", 1e3, 4},
                                                         {"hd", "HD", 1e3, 3},
                                                         {"cd_raw", "CD raw", 1e3, 4},
                                                         {"hd_raw", "HD raw", 1e3, 3},
                                                         {"p2f", "P2F", 1e3, 3},
                                                         {"uniformity_1.0", "uniformity", 1e3, 2},
                                                         {"nuc_1.0", "NUC", 1, 4}}};
using Scores = std::array<double, kScoreCount>;  // plain values, NaN for none

/// By the protocol pu-gan of `stipple metrics` and its seed 0; the last two are of disks of 1 % of the area.
/// Throws as metrics::evaluate does.
Scores score(const PointCloud& output, const PointCloud& truth, const Mesh& mesh, Device device);

/// One output.
struct Row {
    std::string input = {};  // a condition's id
    std::string shape = {}, method = {};
    uint64_t seed = 0;
    std::string key = {};  // fingerprints of input and method: a row that is kept counts while they are the same
    int64_t points = 0;
    double seconds = 0;  // NaN: nothing was computed
    Scores scores = {};
};

std::string rows_to_csv(const std::vector<Row>& rows);
/// Throws Error{bad_file} with the path for anything else.
std::vector<Row> load_rows(const std::string& path);

/// A line of a table: a method on an input.
struct Mean {
    std::string input = {}, method = {};
    std::string source = "measured";        // or "published", "stored"
    Scores mean = {}, deviation = {};       // of the mean over shapes, over seeds; NaN where there are fewer than two
    double seconds = 0;                     // of one output, NaN where it is not known
    int64_t shapes = 0, seeds = 0;          // 0: not known
    std::string commit = {}, command = {};  // of what is stored
};

/// Over shapes, then over seeds; p2f by points, as papers do it. In the order in which input and method first appear.
std::vector<Mean> means_of(const std::vector<Row>& rows);

/// Means that were measured elsewhere: columns input, method, names of scores (those that are missing are NaN), seeds,
/// commit and command. Throws Error{bad_file} with the path.
std::vector<Mean> load_stored(const std::string& path);

/// Puts means into such a file, which is made where there is none: each in place of the row of its input and method, or
/// behind the others. Columns that the file has besides stay, those that it lacks are added; lines of comments go.
/// Atomic. Throws as load_stored, and Error{cannot_write}.
void store_means(const std::string& path, const std::vector<Mean>& means);

}  // namespace stipple::tasks::study
