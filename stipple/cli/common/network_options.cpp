#include "stipple/cli/common/network_options.h"

#include <algorithm>

namespace stipple::cli {

void add_cloud_options(Arguments& app, CloudArguments& arguments) {
    app.add(tasks::cloud_fields(), &arguments.clouds);
    app.option("--from", arguments.from, "Format of the input, when its name and content do not tell");
}

tasks::CloudOptions cloud_options(const CloudArguments& arguments, const Common& common) {
    tasks::CloudOptions options = arguments.clouds;
    options.seed = common.seed;
    if (!arguments.from.empty()) io::format_by_name(arguments.from);
    return options;
}

data::ReadClouds reading(const CloudArguments& arguments, FileProgress& progress) {
    return {arguments.from,
            [&progress](const std::string& path, int64_t done, int64_t total) { progress.show(path, done, total); }};
}

tasks::LoadedBatch load_clouds(const std::vector<data::CloudEntry>& entries, int64_t count,
                               const tasks::CloudOptions& options, const CloudArguments& arguments,
                               const Common& common, io::Warnings& warnings) {
    FileProgress file_progress(common);
    Progress progress("reading clouds", std::min(count, static_cast<int64_t>(entries.size())), progress_mode(common),
                      "clouds");
    return tasks::load_batch(entries, count, options, reading(arguments, file_progress), warnings,
                             [&] { progress.add(); });
}

std::optional<engine::Precision> PrecisionArgument::wanted() const {
    const engine::Precision precision = engine::parse_precision(text);
    return option.given() ? std::optional(precision) : std::nullopt;
}

void add_precision(Arguments& app, PrecisionArgument& precision) {
    precision.option = app.option("--precision", precision.text, "fp32, tf32, fp16, bf16, int8, fp8");
}

void add_picture_size(Arguments& app, int64_t& size) {
    app.option("--size", size, "Pixels of one cloud in the picture; 0 chooses");
}

void require_picture_size(int64_t size) {
    STIPPLE_REQUIRE(size == 0 || (size >= 48 && size <= 2048), "--size must be 48 to 2048, or 0, got {}", size);
}

Json pose_json(const tasks::Pose& pose, const tasks::Axis& network_up) {
    return {{"up", tasks::name_of(tasks::taken_up(pose, network_up))}, {"rotation", tasks::matrix_of(pose)}};
}

PointCloud upright(const PointCloud& cloud, const tasks::Pose& pose, const tasks::Axis& network_up) {
    PointCloud copy;
    copy.positions = cloud.positions.clone();
    tasks::turn_points(copy.positions, tasks::turn(network_up, tasks::Axis{}) * pose);
    return copy;
}

std::map<std::string, std::string> pairs_of(const std::vector<std::string>& settings, const char* option) {
    std::map<std::string, std::string> pairs;
    for (const std::string& setting : settings) {
        const size_t equals = setting.find('=');
        STIPPLE_REQUIRE(equals != std::string::npos && equals > 0, "{} {}: write KEY=VALUE", option, setting);
        const bool added = pairs.emplace(setting.substr(0, equals), setting.substr(equals + 1)).second;
        STIPPLE_REQUIRE(added, "{} {}: {} is set twice", option, setting, setting.substr(0, equals));
    }
    return pairs;
}

std::map<std::string, std::string> model_options(const std::vector<std::string>& settings) {
    return pairs_of(settings, "--set");
}

}  // namespace stipple::cli
