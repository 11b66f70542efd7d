#include <algorithm>
#include <chrono>

#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/engine/commands.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/terminal.h"
#include "stipple/data/class_names.h"
#include "stipple/io/npz.h"
#include "stipple/tasks/model_file.h"

namespace stipple::cli {
namespace {

struct EngineRunOptions {
    std::string engine, output, profile, shard;
    std::vector<std::string> inputs;
    CloudArguments clouds;
};

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// All rows of an output, batch after batch.
struct Gathered {
    std::string name;
    network::TensorType type;
    std::vector<float> values;
    std::vector<int32_t> indices = {};  // instead, of an output of indices

    /// Of a row: an index output has one of all neighbours of a point.
    int64_t columns() const { return type.is_index ? type.width : type.channels; }
    int64_t rows() const { return static_cast<int64_t>(type.is_index ? indices.size() : values.size()) / columns(); }
};

/// An engine whose only input are points.
class Runner {
public:
    Runner(engine::Engine engine, const std::string& path, Profile* profile)
        : engine_(std::move(engine)), context_(engine_) {
        context_.profile_into(profile);
        for (const engine::Binding& input : engine_.program().inputs) {
            const network::TensorType& type =
                *tasks::find_type(engine_.program(), engine_.program().inputs, input.name);
            if (input.name == "points" && type == network::points_of(3)) continue;
            throw Error(ErrorCode::bad_argument, Place{path},
                        fmt::format("its input {} {} cannot come from cloud files", input.name, to_string(type)),
                        "stipple segment gives networks their category");
        }
        for (const engine::Binding& output : engine_.program().outputs)
            outputs.push_back(
                {output.name, *tasks::find_type(engine_.program(), engine_.program().outputs, output.name), {}});
    }

    const engine::Options& options() const { return engine_.options(); }

    /// Seconds that the call took; the first run of a batch's shape may be slower.
    double run(const tasks::CloudBatch& clouds) {
        const ops::Batch batch = clouds.batch();
        const Device device = options().device;
        const Array<float, 2> points = clouds.points_on(device);
        std::vector<Array<float, 2>> results(outputs.size());
        std::vector<Array<int32_t, 2>> found(outputs.size());
        std::vector<engine::Output> views;
        for (size_t i = 0; i < outputs.size(); ++i) {
            const network::TensorType& type = outputs[i].type;
            const int64_t owners = type.level == network::Level::cloud ? batch.clouds()
                                   : type.points > 0                   ? batch.clouds() * type.points
                                                                       : batch.rows();
            if (type.is_index) {
                found[i] = Array<int32_t, 2>({owners, type.width}, device);
                views.push_back({outputs[i].name, {}, found[i].view()});
            } else {
                results[i] = Array<float, 2>({owners * type.width, type.channels}, device);
                views.push_back({outputs[i].name, results[i].view()});
            }
        }
        const double begin = now();
        context_.run(batch, {{"points", points.view()}}, views);
        for (Array<float, 2>& result : results) result = result.to(Device{});
        for (Array<int32_t, 2>& indices : found) indices = indices.to(Device{});
        const double seconds = now() - begin;
        for (size_t i = 0; i < outputs.size(); ++i) {
            outputs[i].values.insert(outputs[i].values.end(), results[i].span().begin(), results[i].span().end());
            outputs[i].indices.insert(outputs[i].indices.end(), found[i].span().begin(), found[i].span().end());
        }
        return seconds;
    }

    std::vector<Gathered> outputs;

private:
    engine::Engine engine_;
    engine::Context context_;
};

void save_arrays(const std::string& path, const std::vector<Gathered>& outputs, const std::vector<int64_t>& offsets,
                 const Common& common) {
    std::vector<io::NpyView> arrays;
    for (const Gathered& output : outputs)
        arrays.push_back({output.name,
                          {output.rows(), output.columns()},
                          output.type.is_index ? DType::i32 : DType::f32,
                          output.type.is_index ? static_cast<const void*>(output.indices.data())
                                               : static_cast<const void*>(output.values.data())});
    // Where each cloud's points begin: rows of outputs of points are those of all clouds, one after the other.
    arrays.push_back({"offsets", {static_cast<int64_t>(offsets.size())}, DType::i64, offsets.data()});
    AtomicFile file(path, common.overwrite_mode());
    io::write_npz_views(arrays, file);
    file.commit();
}

/// The ranges of all outputs, and each cloud's class where there are logits of classes.
void report_outputs(const std::vector<Gathered>& outputs, const std::vector<data::CloudEntry>& entries,
                    const std::map<std::string, std::string>& metadata, const Common& common, Result& result) {
    Table table{{"output", "type", "rows", "min", "max"}, {}};
    Json list = Json::array();
    for (const Gathered& output : outputs) {
        const int64_t rows = output.rows();
        const auto add = [&](const auto& values) {
            const auto [low, high] = std::minmax_element(values.begin(), values.end());
            table.rows.push_back({output.name, to_string(output.type), rows, *low, *high});
            list.push_back({{"name", output.name},
                            {"type", to_string(output.type)},
                            {"rows", rows},
                            {"min", *low},
                            {"max", *high}});
        };
        if (output.type.is_index)
            add(output.indices);
        else
            add(output.values);
        if (output.name != "logits" || output.type.level != network::Level::cloud) continue;
        const std::vector<std::string> names = data::class_names(metadata, "", output.type.channels);
        Json winners = Json::array();
        for (int64_t i = 0; i < rows; ++i) {
            const float* row = output.values.data() + i * output.type.channels;
            const std::string& winner =
                names[static_cast<size_t>(std::max_element(row, row + output.type.channels) - row)];
            winners.push_back({{"path", entries[static_cast<size_t>(i)].name()}, {"class", winner}});
            if (common.table.empty())
                result.text += fmt::format("{}: {}\n", printable(entries[static_cast<size_t>(i)].name()), winner);
        }
        result.fields["clouds"] = std::move(winners);
    }
    result.text += format_table(table, common.table);
    result.fields["results"] = std::move(list);
}

Result run_run(const EngineRunOptions& options, const Common& common) {
    require_one_stdin(options.inputs);
    const Shard shard = parse_shard(options.shard);
    const tasks::CloudOptions clouds = cloud_options(options.clouds, common);
    if (!options.output.empty()) {
        const bool is_npz = options.output.size() > 4 && options.output.substr(options.output.size() - 4) == ".npz";
        STIPPLE_REQUIRE(is_npz, "{}: outputs are written as .npz", options.output);
        require_writable(options.output, common.overwrite_mode());
    }
    require_profile(options.profile, common);
    Profile profile;
    const double begin = now();
    engine::EngineFile file = engine::load_engine(options.engine);
    const double loaded = now() - begin;
    int index = 0;
    if (file.options.device.type == DeviceType::cuda) {
        const Device device = parse_device(common.device == "auto" ? "cuda" : common.device);
        STIPPLE_REQUIRE(device.type == DeviceType::cuda, "{} was built for cuda, not {}", options.engine, device);
        index = device.index;
    }
    const std::map<std::string, std::string> metadata = file.metadata;
    const double before = now();
    Runner runner(engine::compile(std::move(file), index), options.engine,
                  options.profile.empty() ? nullptr : &profile);
    const double compiled = now() - before;

    Result result;
    result.fields["inputs"] = options.inputs;
    std::vector<data::CloudEntry> entries = data::list_clouds(options.inputs);
    const size_t all = entries.size();
    keep_shard(shard, entries);
    if (entries.empty()) return nothing_of_shard(options.shard, all);
    const int64_t most = runner.options().max_batch * runner.options().max_points;
    tasks::CloudBatch batch;
    std::vector<int64_t> offsets = {0};
    std::vector<double> times;
    double total = 0;
    const auto flush = [&] {
        if (batch.clouds() == 0) return;
        times.push_back(runner.run(batch));
        total += times.back();
        batch.clear();
    };
    Progress progress("run", static_cast<int64_t>(entries.size()), progress_mode(common), "clouds");
    FileProgress file_progress(common);
    const data::ReadClouds how = reading(options.clouds, file_progress);
    for (const data::CloudEntry& entry : entries) {
        check_interrupted();
        const Array<float, 2> points =
            tasks::network_points(tasks::load_points(entry, clouds, how, result.warnings), clouds);
        if (points.size(0) > most)
            throw Error(ErrorCode::bad_argument, Place{entry.name()},
                        fmt::format("{} points, the engine was built for {}", grouped(points.size(0)), grouped(most)),
                        "--points takes fewer");
        if (batch.clouds() == runner.options().max_batch || batch.points() + points.size(0) > most) flush();
        batch.add(points);
        offsets.push_back(offsets.back() + points.size(0));
        progress.add();
    }
    flush();
    progress.finish();

    report_outputs(runner.outputs, entries, metadata, common, result);
    result.fields["load_ms"] = 1e3 * loaded;
    result.fields["compile_ms"] = 1e3 * compiled;
    result.fields["run_ms"] = 1e3 * total;
    result.fields["batches"] = times.size();
    if (common.table.empty())
        result.text += fmt::format("loaded in {:.2f} ms, made ready in {:.2f} ms; {} clouds in {} batches, {:.2f} ms\n",
                                   1e3 * loaded, 1e3 * compiled, grouped(static_cast<int64_t>(entries.size())),
                                   times.size(), 1e3 * total);
    if (!options.output.empty()) {
        if (!common.dry_run) save_arrays(options.output, runner.outputs, offsets, common);
        result.fields["outputs"] =
            Json::array({{{"path", options.output}, {"format", "npz"}, {"written", !common.dry_run}}});
        if (common.table.empty())
            result.text += fmt::format("{} {}\n", common.dry_run ? "would write" : "wrote", printable(options.output));
    }
    report_profile(profile, options.profile, common.overwrite_mode(), common, result);
    return result;
}

}  // namespace

Command add_engine_run(Arguments& group, Common& common) {
    auto options = std::make_shared<EngineRunOptions>();
    Arguments& app = group.command("run", "Run a built engine on clouds");
    Option engine = app.option("ENGINE", options->engine, "What `stipple engine build` wrote");
    Option input = app.option("INPUT", options->inputs, "Clouds, meshes, folders of them, HDF5 sets");
    app.option("-o,--output", options->output, "All outputs, as arrays of this .npz");
    add_cloud_options(app, options->clouds);
    add_shard(app, options->shard);
    add_profile(app, options->profile);
    app.footer("Example:\n  stipple engine run pointnet.engine scans/ -o logits.npz");
    return {&app, [options, &common] { return run_run(*options, common); }, {engine, input}};
}

}  // namespace stipple::cli
