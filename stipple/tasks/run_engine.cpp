#include "stipple/tasks/run_engine.h"

#include <algorithm>
#include <chrono>

#include "stipple/core/interrupt.h"
#include "stipple/core/number_text.h"
#include "stipple/data/class_names.h"
#include "stipple/engine/program.h"

namespace stipple::tasks {
namespace {

double milliseconds() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// An engine whose only input are points.
class PointsRunner {
public:
    PointsRunner(engine::Engine engine, const std::string& path, Profile* profile)
        : engine_(std::move(engine)), context_(engine_) {
        context_.profile_into(profile);
        const engine::Program& program = engine_.program();
        for (const engine::Binding& input : program.inputs) {
            const network::TensorType& type = *find_type(program, program.inputs, input.name);
            if (input.name == "points" && type == network::points_of(3)) continue;
            throw Error(ErrorCode::bad_argument, Place{path},
                        fmt::format("its input {} {} cannot come from cloud files", input.name, to_string(type)),
                        "stipple segment gives networks their category");
        }
        for (const engine::Binding& output : program.outputs)
            outputs.push_back({output.name, *find_type(program, program.outputs, output.name), {}});
    }

    const engine::Options& options() const { return engine_.options(); }

    /// Milliseconds that the call took; the first run of a batch's shape may be slower.
    double run(const CloudBatch& clouds) {
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
        const double begin = milliseconds();
        context_.run(batch, {{"points", points.view()}}, views);
        for (Array<float, 2>& result : results) result = result.to(Device{});
        for (Array<int32_t, 2>& indices : found) indices = indices.to(Device{});
        const double took = milliseconds() - begin;
        for (size_t i = 0; i < outputs.size(); ++i) {
            outputs[i].values.insert(outputs[i].values.end(), results[i].span().begin(), results[i].span().end());
            outputs[i].indices.insert(outputs[i].indices.end(), found[i].span().begin(), found[i].span().end());
        }
        return took;
    }

    std::vector<EngineOutput> outputs;

private:
    engine::Engine engine_;
    engine::Context context_;
};

OutputRange range_of(const EngineOutput& output) {
    OutputRange range{output.name, to_string(output.type), output.rows()};
    const auto look = [&](const auto& values) {
        if (values.empty()) return;
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        range.least = static_cast<double>(*least), range.most = static_cast<double>(*most);
    };
    if (output.type.is_index)
        look(output.indices);
    else
        look(output.values);
    return range;
}

/// The class with the largest logit of each cloud.
std::vector<CloudClass> classes_of(const EngineOutput& logits, const std::vector<data::CloudEntry>& entries,
                                   const std::map<std::string, std::string>& metadata) {
    const int64_t channels = logits.type.channels;
    const std::vector<std::string> names = data::class_names(metadata, "", channels);
    std::vector<CloudClass> classes;
    for (int64_t i = 0; i < logits.rows(); ++i) {
        const float* row = logits.values.data() + i * channels;
        classes.push_back({entries[static_cast<size_t>(i)].name(),
                           names[static_cast<size_t>(std::max_element(row, row + channels) - row)]});
    }
    return classes;
}

}  // namespace

const Fields& output_range_fields() {
    static const Fields fields = {
        field<&OutputRange::name>("name", "The output"), field<&OutputRange::type>("type", "Its shape for a batch"),
        field<&OutputRange::rows>("rows", "Rows of all clouds"), field<&OutputRange::least>("min", "The least number"),
        field<&OutputRange::most>("max", "The largest number")};
    return fields;
}

const Fields& cloud_class_fields() {
    static const Fields fields = {field<&CloudClass::path>("path", "The cloud"),
                                  field<&CloudClass::name>("class", "The class with the largest logit")};
    return fields;
}

const Fields& engine_run_fields() {
    static const Fields fields = {
        objects_field<&EngineRun::classes>("clouds", cloud_class_fields, "Of classifiers: the class of each cloud"),
        objects_field<&EngineRun::ranges>("results", output_range_fields, "What the outputs hold"),
        field<&EngineRun::load_ms>("load_ms", "Reading the engine's file").unit("ms"),
        field<&EngineRun::compile_ms>("compile_ms", "Making it ready on the device").unit("ms"),
        field<&EngineRun::run_ms>("run_ms", "Running all batches").unit("ms"),
        field<&EngineRun::batches>("batches", "Runs of it")};
    return fields;
}

EngineRun run_engine(const std::string& path, const std::vector<data::CloudEntry>& entries,
                     const RunEngineOptions& options, const data::ReadClouds& how, io::Warnings& warnings) {
    EngineRun run;
    const double begin = milliseconds();
    engine::EngineFile file = engine::load_engine(path);
    run.load_ms = milliseconds() - begin;
    int index = 0;
    if (file.options.device.type == DeviceType::cuda) {
        const Device device = parse_device(options.device == "auto" ? "cuda" : options.device);
        STIPPLE_REQUIRE(device.type == DeviceType::cuda, "{} was built for cuda, not {}", path, device);
        index = device.index;
    }
    const std::map<std::string, std::string> metadata = file.metadata;
    const double before = milliseconds();
    PointsRunner runner(engine::compile(std::move(file), index), path, options.profile);
    run.compile_ms = milliseconds() - before;

    const int64_t most = runner.options().max_batch * runner.options().max_points;
    CloudBatch batch;
    const auto flush = [&] {
        if (batch.clouds() == 0) return;
        run.run_ms += runner.run(batch);
        ++run.batches;
        batch.clear();
    };
    for (const data::CloudEntry& entry : entries) {
        check_interrupted();
        const Array<float, 2> points =
            network_points(load_points(entry, options.clouds, how, warnings), options.clouds);
        if (points.size(0) > most)
            throw Error(ErrorCode::bad_argument, Place{entry.name()},
                        fmt::format("{} points, the engine was built for {}", grouped(points.size(0)), grouped(most)),
                        "--points takes fewer");
        if (batch.clouds() == runner.options().max_batch || batch.points() + points.size(0) > most) flush();
        batch.add(points);
        run.offsets.push_back(run.offsets.back() + points.size(0));
        if (options.advance) options.advance();
    }
    flush();
    run.outputs = std::move(runner.outputs);
    for (const EngineOutput& output : run.outputs) {
        run.ranges.push_back(range_of(output));
        if (output.name == "logits" && output.type.level == network::Level::cloud)
            run.classes = classes_of(output, entries, metadata);
    }
    return run;
}

}  // namespace stipple::tasks
