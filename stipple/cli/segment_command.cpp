#include <algorithm>
#include <map>
#include <set>

#include "stipple/cli/commands.h"
#include "stipple/cli/draw_values.h"
#include "stipple/cli/engine_model.h"
#include "stipple/cli/files.h"
#include "stipple/cli/network_clouds.h"
#include "stipple/cli/part_categories.h"
#include "stipple/cli/table.h"
#include "stipple/core/interrupt.h"
#include "stipple/ops/knn.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

struct Options {
    std::string model, names, category, picture, precision = "fp32", up = "z";
    std::vector<std::string> inputs;
    OutputFile output;
    CloudOptions clouds;
    Option precision_option;
};

/// A segmenter that is compiled for the largest cloud it has met.
class Segmenter {
public:
    Segmenter(const Options& options, const Common& common) : source_(load_model_or_engine(options.model)) {
        options_.device = device_for(source_, common);
        options_.precision = engine::parse_precision(options.precision);
        precision_given_ = options.precision_option.given();
        options_.max_batch = 1;
        options_.max_points = options.clouds.points > 0 ? options.clouds.points : 2048;
        prepare();
        const engine::Program& program = engine_->program();
        const network::TensorType* logits = find_type(program, program.outputs, "logits");
        const network::TensorType* points = find_type(program, program.inputs, "points");
        const network::TensorType* category = find_type(program, program.inputs, "category");
        const bool inputs = points && *points == network::points_of(3) &&
                            program.inputs.size() == (category ? 2u : 1u) &&
                            (!category || category->level == network::Level::cloud);
        if (!inputs || !logits || *logits != network::points_of(logits->channels))
            throw Error(ErrorCode::bad_argument, Place{options.model},
                        fmt::format("{} does not segment clouds: it needs points [B, N, 3] and logits [B, N, parts]",
                                    source_.name()),
                        "stipple engine inspect shows what it does");
        parts_ = logits->channels;
        end_ = parts_;
        if (!category) {
            STIPPLE_REQUIRE(options.category.empty(), "--category: {} takes none", source_.name());
            return;
        }
        const std::vector<PartCategory> known = part_categories(source_.metadata(), category->channels, parts_);
        const size_t chosen = find_category(known, options.category);
        one_hot_.assign(known.size(), 0);
        one_hot_[chosen] = 1;
        begin_ = known[chosen].begin;
        end_ = known[chosen].end;
    }

    const ModelOrEngine& source() const { return source_; }
    int64_t parts() const { return parts_; }
    engine::Precision precision() const { return engine_->options().precision; }

    /// The likeliest part of each point, of those that the category has.
    std::vector<int32_t> run(const Array<float, 2>& points) {
        const int64_t n = points.size(0);
        const engine::Options& built = engine_->options();
        if (n > built.max_batch * built.max_points) {
            STIPPLE_REQUIRE(source_.model, "{} points, the engine was built for {}", grouped(n),
                            grouped(built.max_batch * built.max_points));
            options_.max_points = std::max(n, 2 * options_.max_points);
            prepare();
        }
        const Device device = engine_->options().device;
        const Array<float, 2> there = points.to(device);
        Array<float, 2> logits({n, parts_}, device), category;
        std::vector<engine::Input> inputs = {{"points", there.view()}};
        if (!one_hot_.empty()) {
            Array<float, 2> host({1, static_cast<int64_t>(one_hot_.size())});
            std::copy(one_hot_.begin(), one_hot_.end(), host.data());
            category = host.to(device);
            inputs.push_back({"category", category.view()});
        }
        context_->run(ops::Batch::single(n), inputs, {{"logits", logits.view()}});
        const Array<float, 2> host = logits.to(Device{});
        std::vector<int32_t> labels(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) {
            const float* row = host.data() + i * parts_;
            labels[i] = static_cast<int32_t>(std::max_element(row + begin_, row + end_) - row);
        }
        return labels;
    }

private:
    void prepare() {
        context_.reset();
        engine_.reset();
        engine_.emplace(compile_any(source_, options_, precision_given_));
        context_.emplace(*engine_);
    }

    ModelOrEngine source_;
    engine::Options options_;
    bool precision_given_ = false;
    int64_t parts_ = 0, begin_ = 0, end_ = 0;
    std::vector<float> one_hot_;
    std::optional<engine::Engine> engine_;
    std::optional<engine::Context> context_;
};

/// Each point of the cloud gets the label of the nearest one that the network saw.
std::vector<int32_t> spread_labels(const PointCloud& cloud, const std::vector<int32_t>& chosen,
                                   const std::vector<int32_t>& labels) {
    const auto seen = static_cast<int64_t>(chosen.size());
    Array<float, 2> few({seen, 3});
    for (int64_t i = 0; i < seen; ++i)
        std::copy_n(cloud.positions.data() + 3 * int64_t{chosen[i]}, 3, few.data() + 3 * i);
    Array<int32_t, 2> nearest({cloud.size(), 1});
    const ops::PointIndex index{ops::Clouds(few.view())};
    ops::knn(index, cloud.positions.view(), nearest.view(), {});
    std::vector<int32_t> all(static_cast<size_t>(cloud.size()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = labels[static_cast<size_t>(std::max(0, nearest.data()[i]))];
    return all;
}

void put_labels(PointCloud& cloud, const std::vector<int32_t>& labels) {
    Attribute column("label", DType::i32, cloud.size(), 1);
    std::copy(labels.begin(), labels.end(), column.as<int32_t>().data());
    if (Attribute* old = find(cloud.attributes, "label"))
        *old = std::move(column);
    else
        cloud.attributes.push_back(std::move(column));
}

/// Where the clouds go: one file, or a folder for many.
std::vector<OutputFile> outputs_of(const Options& options, const std::vector<CloudEntry>& entries) {
    const std::string& path = options.output.path;
    const bool folder = !path.empty() && path != "-" && (path.back() == '/' || is_folder(path));
    if (!folder) {
        STIPPLE_REQUIRE(entries.size() == 1, "{} clouds need a folder as output, got {}", entries.size(), path);
        return {options.output};
    }
    std::vector<OutputFile> outputs;
    std::set<std::string> taken;
    const std::string extension(
        io::info_of(io::format_by_name(options.output.format.empty() ? "ply" : options.output.format)).extensions[0]);
    for (const CloudEntry& entry : entries) {
        OutputFile output = options.output;
        output.path = fmt::format("{}{}{}{}.{}", path, path.back() == '/' ? "" : "/", stem_of(entry.path),
                                  entry.item < 0 ? "" : fmt::format("_{}", entry.item), extension);
        STIPPLE_REQUIRE(taken.insert(output.path).second, "two clouds would both become {}", output.path);
        outputs.push_back(std::move(output));
    }
    return outputs;
}

Image draw(const PointCloud& cloud, const Options& options, const std::vector<std::string>& names) {
    const picture::Panel panel{.cloud = &cloud, .caption = {}, .color_by = "label"};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 1024;
    style.legend_title = "part";
    style.viewpoint.up = options.up == "y" ? picture::UpAxis::y : picture::UpAxis::z;
    for (size_t i = 0; i < names.size(); ++i) style.label_names[static_cast<int64_t>(i)] = names[i];
    return picture::draw_figure({&panel, 1}, style).image;
}

Result run_segment(const Options& options, const Common& common) {
    require_one_stdin(options.inputs);
    require_sense(options.clouds);
    const std::vector<CloudEntry> entries = list_clouds(options.inputs);
    const std::vector<OutputFile> outputs = outputs_of(options, entries);
    std::vector<io::Format> formats;
    for (const OutputFile& output : outputs) formats.push_back(require_output(output, common, "label"));
    STIPPLE_REQUIRE(options.picture.empty() || entries.size() == 1, "--picture is for one cloud, not {}",
                    entries.size());
    require_picture(options.picture, common);
    Segmenter segmenter(options, common);
    const std::vector<std::string> names = class_names(segmenter.source().metadata(), options.names, segmenter.parts());

    Result result;
    result.fields["inputs"] = options.inputs;
    result.fields["model"] = segmenter.source().name();
    result.fields["precision"] = name_of(segmenter.precision());
    Table table{{"file", "points", "parts", "written"}, {}};
    Json list = Json::array();
    int64_t failures = 0;
    Progress progress("segment", static_cast<int64_t>(entries.size()), progress_mode(common), "clouds");
    for (size_t i = 0; i < entries.size(); ++i) {
        check_interrupted();
        try {
            Mesh mesh;
            CloudOptions loading = options.clouds;
            loading.sample_faces = false;  // the file's own points get labels
            mesh.vertices = load_entry(entries[i], loading, common, result.warnings);
            std::vector<int32_t> chosen;
            const Array<float, 2> points = network_points(mesh.vertices, options.clouds, common.seed, &chosen);
            std::vector<int32_t> labels = about_file(entries[i].name(), [&] { return segmenter.run(points); });
            if (static_cast<int64_t>(chosen.size()) < mesh.vertices.size())
                labels = spread_labels(mesh.vertices, chosen, labels);
            put_labels(mesh.vertices, labels);
            std::map<int32_t, int64_t> counts;
            for (const int32_t label : labels) ++counts[label];
            Json parts = Json::array();
            for (const auto& [label, count] : counts)
                parts.push_back({{"label", label}, {"name", names[static_cast<size_t>(label)]}, {"points", count}});
            list.push_back(
                {{"path", entries[i].name()}, {"points", mesh.vertices.size()}, {"parts", std::move(parts)}});
            save_output(mesh, outputs[i], formats[i],
                        fmt::format("{} points in {} parts", grouped(mesh.vertices.size()), counts.size()), common,
                        result);
            table.rows.push_back({outputs[i].path, mesh.vertices.size(), counts.size(), !common.dry_run});
            save_picture(
                options.picture, [&] { return draw(mesh.vertices, options, names); }, common, result);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_file || entries.size() == 1) throw;
            result.warnings.push_back(error.what());
            list.push_back({{"path", entries[i].name()}, {"error", error.message()}});
            ++failures;
        }
        progress.add();
    }
    progress.finish();
    result.fields["files"] = std::move(list);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    if (failures > 0)
        result.failure =
            Error(ErrorCode::bad_file, fmt::format("{} of {} clouds could not be read", failures, entries.size()));
    return result;
}

}  // namespace

Command add_segment(Arguments& root, Common& common) {
    auto options = std::make_shared<Options>();
    options->clouds.points = 0;
    Arguments& app = root.command("segment", "Label the parts of clouds");
    Option model = app.option("--model", options->model, "Weights (.safetensors) or a built engine");
    Option input = app.option("INPUT", options->inputs, "Clouds, folders of them, HDF5 sets");
    Option output = app.option("-o,--output", options->output.path, "File, or folder for many; - is standard output");
    app.option("--category", options->category, "What the clouds show, for networks that ask: chair");
    app.option("--picture", options->picture, "Draw the parts into this .png");
    add_up(app, options->up);
    app.option("--names", options->names, "Names of the parts, one a line; else those in the model").text("FILE");
    add_cloud_options(app, options->clouds);
    options->precision_option =
        app.option("--precision", options->precision, "fp32, tf32, fp16, bf16, int8, fp8").show_default();
    add_output_format(app, options->output);
    app.footer(
        "With --points, every point gets the label of the nearest one that the network saw.\n\n"
        "Example:\n  stipple segment --model parts.safetensors chair.ply -o parts.ply --category chair --picture "
        "parts.png");
    return {&app, [options, &common] { return run_segment(*options, common); }, {model, input, output}};
}

}  // namespace stipple::cli
