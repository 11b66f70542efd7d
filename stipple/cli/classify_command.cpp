#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/engine_model.h"
#include "stipple/cli/network_clouds.h"
#include "stipple/cli/table.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/terminal.h"

namespace stipple::cli {
namespace {

struct Options {
    std::string model, names, precision = "fp32";
    std::vector<std::string> inputs;
    CloudOptions clouds;
    int64_t top = 1, batch = 32;
    Option precision_option;
};

/// A classifier that takes batches of any size: it is compiled again when one does not fit.
class Classifier {
public:
    Classifier(const Options& options, const Common& common)
        : source_(load_model_or_engine(options.model)), max_batch_(options.batch) {
        options_.device = device_for(source_, common);
        options_.precision = engine::parse_precision(options.precision);
        precision_given_ = options.precision_option.given();
        options_.max_batch = options.batch;
        options_.max_points = options.clouds.points > 0 ? options.clouds.points : 1024;
        if (source_.file) max_batch_ = std::min(max_batch_, source_.file->options.max_batch);
        prepare();
        const network::TensorType* logits = find_type(engine_->program(), engine_->program().outputs, "logits");
        const auto& inputs = engine_->program().inputs;
        if (!logits || logits->level != network::Level::cloud || inputs.size() != 1 || inputs[0].name != "points" ||
            *find_type(engine_->program(), inputs, "points") != network::points_of(3))
            throw Error(ErrorCode::bad_argument, Place{options.model},
                        fmt::format("{} does not classify clouds: it needs points [B, N, 3] and logits [B, classes]",
                                    source_.name()),
                        "stipple engine inspect shows what it does");
        classes_ = logits->channels;
    }

    const ModelOrEngine& source() const { return source_; }
    int64_t classes() const { return classes_; }
    int64_t max_batch() const { return max_batch_; }
    /// Points that a batch may have, as far as that is fixed.
    int64_t max_points() const {
        return source_.file ? source_.file->options.max_batch * source_.file->options.max_points : INT64_MAX;
    }
    engine::Precision precision() const { return engine_->options().precision; }

    std::vector<float> run(const CloudBatch& batch) {
        const int64_t needed = (batch.points() + options_.max_batch - 1) / options_.max_batch;
        if (source_.model && needed > options_.max_points) {
            options_.max_points = std::max(needed, 2 * options_.max_points);
            prepare();
        }
        const Device device = engine_->options().device;
        Array<float, 2> points({batch.points(), 3}), logits({batch.clouds(), classes_}, device);
        std::copy(batch.rows.begin(), batch.rows.end(), points.data());
        if (device.type == DeviceType::cuda) points = points.to(device);
        context_->run(batch.batch(), {{"points", points.view()}}, {{"logits", logits.view()}});
        const Array<float, 2> host = logits.to(Device{});
        return {host.data(), host.data() + host.elements()};
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
    int64_t classes_ = 0, max_batch_ = 1;
    std::optional<engine::Engine> engine_;
    std::optional<engine::Context> context_;
};

struct Guess {
    int64_t index = 0;
    double probability = 0;
};

/// The classes by probability, the likeliest first, ties to the lower index.
std::vector<Guess> ranked(const float* logits, int64_t classes) {
    std::vector<Guess> guesses;
    const double largest = *std::max_element(logits, logits + classes);
    double sum = 0;
    for (int64_t i = 0; i < classes; ++i) {
        guesses.push_back({i, std::exp(logits[i] - largest)});
        sum += guesses.back().probability;
    }
    for (Guess& guess : guesses) guess.probability /= sum;
    std::stable_sort(guesses.begin(), guesses.end(),
                     [](const Guess& a, const Guess& b) { return a.probability > b.probability; });
    return guesses;
}

class Report {
public:
    Report(std::vector<std::string> names, int64_t top) : names_(std::move(names)), top_(top) {
        table_.columns = {"file", "points"};
        for (int64_t i = 0; i < top; ++i) {
            table_.columns.push_back(i == 0 ? "class" : fmt::format("class {}", i + 1));
            table_.columns.push_back(i == 0 ? "probability" : fmt::format("probability {}", i + 1));
        }
    }

    void add(const std::string& file, int64_t points, const float* logits) {
        const std::vector<Guess> guesses = ranked(logits, static_cast<int64_t>(names_.size()));
        std::vector<Json> row = {file, points};
        Json top = Json::array();
        for (int64_t i = 0; i < top_; ++i) {
            const std::string& name = names_[static_cast<size_t>(guesses[i].index)];
            const double probability = std::round(1e4 * guesses[i].probability) / 1e4;
            row.insert(row.end(), {name, probability});
            top.push_back({{"class", name}, {"index", guesses[i].index}, {"probability", guesses[i].probability}});
        }
        table_.rows.push_back(std::move(row));
        list_.push_back({{"path", file}, {"points", points}, {"top", std::move(top)}});
    }

    void add_failure(const std::string& file, const Error& error) {
        list_.push_back({{"path", file}, {"error", error.message()}});
        ++failures_;
    }

    int64_t failures() const { return failures_; }
    Json list() && { return std::move(list_); }
    std::string text(const std::string& style) const { return format_table(table_, style); }

private:
    std::vector<std::string> names_;
    int64_t top_, failures_ = 0;
    Table table_;
    Json list_ = Json::array();
};

Result run_classify(const Options& options, const Common& common) {
    require_one_stdin(options.inputs);
    require_sense(options.clouds);
    STIPPLE_REQUIRE(options.batch >= 1 && options.batch <= 65536, "--batch must be 1 to 65536, got {}", options.batch);
    Classifier classifier(options, common);
    STIPPLE_REQUIRE(options.top >= 1 && options.top <= classifier.classes(), "--top must be 1 to {}, got {}",
                    classifier.classes(), options.top);
    const std::vector<CloudEntry> entries = list_clouds(options.inputs);
    Report report(class_names(classifier.source().metadata(), options.names, classifier.classes()), options.top);
    Result result;
    result.fields["inputs"] = options.inputs;

    CloudBatch batch;
    std::vector<std::string> files;
    const auto flush = [&] {
        if (batch.clouds() == 0) return;
        const std::vector<float> logits = classifier.run(batch);
        for (int64_t i = 0; i < batch.clouds(); ++i)
            report.add(files[static_cast<size_t>(i)], batch.batch().size(i), logits.data() + i * classifier.classes());
        batch.clear();
        files.clear();
    };
    constexpr int64_t kPoints = int64_t{1} << 20;  // of a batch, unless one cloud alone has more
    const int64_t most = std::min(kPoints, classifier.max_points());
    Progress progress("classify", static_cast<int64_t>(entries.size()), progress_mode(common), "clouds");
    for (const CloudEntry& entry : entries) {
        check_interrupted();
        try {
            const PointCloud cloud = load_entry(entry, options.clouds, common, result.warnings);
            const Array<float, 2> points = network_points(cloud, options.clouds, common.seed);
            if (points.size(0) > classifier.max_points())
                throw Error(ErrorCode::bad_file, Place{entry.name()},
                            fmt::format("{} points, the engine was built for {}", grouped(points.size(0)),
                                        grouped(classifier.max_points())));
            if (batch.clouds() == classifier.max_batch() || batch.points() + points.size(0) > most) flush();
            batch.add(points);
            files.push_back(entry.name());
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_file) throw;
            flush();  // results stay in the order of the files
            result.warnings.push_back(error.what());
            report.add_failure(entry.name(), error);
        }
        progress.add();
    }
    flush();
    progress.finish();

    result.fields["model"] = classifier.source().name();
    result.fields["precision"] = name_of(classifier.precision());
    result.text = report.text(common.table);
    if (report.failures() > 0)
        result.failure = Error(ErrorCode::bad_file,
                               fmt::format("{} of {} clouds could not be read", report.failures(), entries.size()));
    result.fields["files"] = std::move(report).list();
    const auto trained = classifier.source().metadata().find("stipple.trained");
    if (trained != classifier.source().metadata().end() && trained->second == "false")
        result.warnings.push_back(fmt::format("{}: weights are random, so are the classes", options.model));
    return result;
}

}  // namespace

Command add_classify(Arguments& root, Common& common) {
    auto options = std::make_shared<Options>();
    Arguments& app = root.command("classify", "Say what clouds show");
    Option model = app.option("--model", options->model, "Weights (.safetensors) or a built engine");
    Option input = app.option("INPUT", options->inputs, "Clouds, meshes, folders of them, HDF5 sets");
    app.option("--top", options->top, "The likeliest classes of each").show_default();
    app.option("--names", options->names, "Names of the classes, one a line; else those in the model").text("FILE");
    add_cloud_options(app, options->clouds);
    options->precision_option =
        app.option("--precision", options->precision, "fp32, tf32, fp16, bf16, int8, fp8").show_default();
    app.option("--batch", options->batch, "Clouds at a time").show_default();
    app.footer(
        "Example:\n  stipple classify --model pointnet.safetensors scans/ --top 3\n"
        "  stipple classify --model pointnet.engine *.ply --table csv > classes.csv");
    return {&app, [options, &common] { return run_classify(*options, common); }, {model, input}};
}

}  // namespace stipple::cli
