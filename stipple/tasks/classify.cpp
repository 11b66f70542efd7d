#include "stipple/tasks/classify.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/number_text.h"
#include "stipple/core/parallel.h"
#include "stipple/engine/program.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks {

Classifier::Classifier(ModelOrEngine source, const RunnerOptions& options) : runner_(std::move(source), options) {
    const engine::Program& program = runner_.program();
    const network::TensorType* logits = find_type(program, program.outputs, "logits");
    const auto& inputs = program.inputs;
    if (!logits || logits->level != network::Level::cloud || inputs.size() != 1 || inputs[0].name != "points" ||
        *find_type(program, inputs, "points") != network::points_of(3))
        throw Error(ErrorCode::bad_argument, Place{runner_.source().path},
                    fmt::format("{} does not classify clouds: it needs points [B, N, 3] and logits [B, classes]",
                                runner_.source().name()),
                    "stipple engine inspect shows what it does");
    classes_ = logits->channels;
    const auto& metadata = runner_.source().metadata();
    try {
        confidence_ = confidence_of(metadata, classes_);
        up_ = up_of(metadata);
    } catch (const Error& error) {
        throw error.at_path(runner_.source().path);
    }
}

std::vector<float> Classifier::run(const CloudBatch& batch) {
    engine::Context& context = runner_.reserve(batch.points());
    const Device device = runner_.device();
    const Array<float, 2> points = batch.points_on(device);
    Array<float, 2> logits({batch.clouds(), classes_}, device);
    context.run(batch.batch(), {{"points", points.view()}}, {{"logits", logits.view()}});
    const Array<float, 2> host = logits.to(Device{});
    return {host.data(), host.data() + host.elements()};
}

std::vector<Guess> ranked(std::span<const double> probabilities) {
    std::vector<Guess> guesses;
    for (size_t i = 0; i < probabilities.size(); ++i) guesses.push_back({static_cast<int64_t>(i), probabilities[i]});
    std::stable_sort(guesses.begin(), guesses.end(),
                     [](const Guess& a, const Guess& b) { return a.probability > b.probability; });
    return guesses;
}

namespace {

/// Clouds on their way through the network, in some pose each.
struct Waiting {
    struct Member {
        size_t entry, pose;
    };
    CloudBatch clouds;
    std::vector<Member> members;
};

std::vector<Assessment> assess_batch(Classifier& classifier, const Waiting& waiting) {
    const std::vector<float> logits = classifier.run(waiting.clouds);
    const auto classes = static_cast<size_t>(classifier.classes());
    std::vector<Assessment> assessments(waiting.members.size());
    parallel_for(static_cast<int64_t>(assessments.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const auto row = std::span(logits).subspan(static_cast<size_t>(i) * classes, classes);
            const int64_t first = waiting.clouds.offsets[i], n = waiting.clouds.offsets[i + 1] - first;
            if (!classifier.confidence()) {
                assessments[i] = assess(row);
                continue;
            }
            // Measures are of clouds whose z is up.
            Array<float, 2> points({n, 3});
            std::copy_n(waiting.clouds.rows.data() + 3 * first, 3 * n, points.data());
            turn_points(points, turn(classifier.up(), Axis{}));
            assessments[i] = assess(*classifier.confidence(), row, measure_shape(points.view()), n);
        }
    });
    return assessments;
}

/// `points_of`: what the network sees of a cloud, or throws Error{bad_file}; `name_of` for messages.
std::vector<Classified> classify_each(Classifier& classifier, size_t count,
                                      const std::function<Array<float, 2>(size_t)>& points_of,
                                      const std::function<std::string(size_t)>& name_of,
                                      const std::function<void()>& advance, const std::vector<Pose>& poses) {
    STIPPLE_REQUIRE(!poses.empty(), "classify: no pose to try");
    constexpr int64_t kPoints = int64_t{1} << 20;  // of a batch, unless one cloud alone has more
    const NetworkRunner& runner = classifier.runner();
    const int64_t most = std::min(kPoints, runner.max_points());
    std::vector<Classified> answers(count);
    std::vector<double> evidence(count);
    Waiting waiting;
    const auto flush = [&] {
        if (waiting.members.empty()) return;
        const std::vector<Assessment> assessments = assess_batch(classifier, waiting);
        for (size_t i = 0; i < assessments.size(); ++i) {
            const auto [entry, pose] = waiting.members[i];
            Classified& answer = answers[entry];
            if (!answer.guesses.empty() && !(assessments[i].evidence > evidence[entry])) continue;
            answer.guesses = ranked(assessments[i].probabilities);
            answer.distance = assessments[i].distance;
            answer.pose = pose;
            evidence[entry] = assessments[i].evidence;
        }
        waiting = {};
    };
    for (size_t i = 0; i < count; ++i) {
        check_interrupted();
        try {
            const Array<float, 2> points = points_of(i);
            const int64_t n = points.size(0);
            if (n > runner.max_points())
                throw Error(
                    ErrorCode::bad_file, Place{name_of(i)},
                    fmt::format("{} points, the engine was built for {}", grouped(n), grouped(runner.max_points())));
            answers[i].points = n;
            for (size_t pose = 0; pose < poses.size(); ++pose) {
                if (waiting.clouds.clouds() == runner.max_batch() || waiting.clouds.points() + n > most) flush();
                Array<float, 2> turned = points.clone();
                turn_points(turned, poses[pose]);
                waiting.clouds.add(turned);
                waiting.members.push_back({i, pose});
            }
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_file) throw;
            answers[i].error = error;
        }
        if (advance) advance();
    }
    flush();
    return answers;
}

}  // namespace

const Fields& classify_fields() {
    using Options = ClassifyOptions;
    static const std::string model_help =
        fmt::format("Weights by path or name, or an engine; else {}", kClassifierWeights);
    static const Fields fields = {
        field<&Options::model>("model", model_help.c_str()),
        field<&Options::top>("top", "The likeliest classes of each").from(1),
        object_field<&Options::pose>("", pose_fields),
        field<&Options::names>("names", "Names of the classes, one a line; else those in the model").shown("FILE"),
        object_field<&Options::clouds>("", cloud_fields),
        object_field<&Options::runner>("", precision_fields),
        field<&Options::runner, &RunnerOptions::batch>("batch", "Clouds at a time").between(1, 65536)};
    return fields;
}

namespace {
const Fields& guess_fields() {
    static const Fields fields = {field<&NamedGuess::name>("class", "Name of the class"),
                                  field<&NamedGuess::index>("index", "Its number"),
                                  field<&NamedGuess::probability>("probability", "How likely it is, 0 to 1")};
    return fields;
}
}  // namespace

const Fields& classified_fields() {
    using Result = ClassifiedCloud;
    static const Fields fields = {
        field<&Result::points>("points", "Points that the network saw"),
        objects_field<&Result::top>("top", guess_fields, "The likeliest classes"),
        field<&Result::truth>("truth", "Its class, where a data set or a folder names it"),
        field<&Result::unlike>("unlike", "Whether it is unlike anything that the network was trained on"),
        field<&Result::distance>("distance", "From the training clouds; above 1 it is unlike them")};
    return fields;
}

Classifier load_classifier(const ClassifyOptions& options) {
    check_fields(classify_fields(), &options);
    require_valid(options.clouds);
    RunnerOptions runner = options.runner;
    runner.points = options.clouds.points > 0 ? options.clouds.points : 1024;
    Classifier classifier(
        load_model_or_engine(options.model.empty() ? shipped_weights(kClassifierWeights) : options.model), runner);
    STIPPLE_REQUIRE(options.top <= classifier.classes(), "--top must be 1 to {}, got {}", classifier.classes(),
                    options.top);
    return classifier;
}

ClassifiedCloud described(const Classified& answer, const std::vector<std::string>& names, int64_t top) {
    ClassifiedCloud cloud;
    cloud.points = answer.points;
    for (int64_t k = 0; k < top; ++k) {
        const auto [index, probability] = answer.guesses[static_cast<size_t>(k)];
        cloud.top.push_back({names[static_cast<size_t>(index)], index, probability});
    }
    cloud.distance = answer.distance;
    if (answer.distance) cloud.unlike = answer.is_unlike();
    return cloud;
}

std::vector<Classified> classify(Classifier& classifier, const std::vector<data::CloudEntry>& entries,
                                 const CloudOptions& options, const data::ReadClouds& how, io::Warnings& warnings,
                                 const std::function<void()>& advance, const std::vector<Pose>& poses,
                                 const std::function<void(size_t entry, const Mesh&)>& look) {
    const auto load = [&](size_t i) {
        return load_points(entries[i], options, how, warnings, [&](const Mesh& mesh) {
            if (look) look(i, mesh);
        });
    };
    return classify_each(
        classifier, entries.size(), [&](size_t i) { return network_points(load(i), options); },
        [&](size_t i) { return entries[i].name(); }, advance, poses);
}

std::vector<Classified> classify(Classifier& classifier, std::span<const PointCloud* const> clouds,
                                 const CloudOptions& options, const std::vector<Pose>& poses) {
    require_valid(options);
    const auto name_of = [](size_t i) { return fmt::format("cloud {}", i); };
    std::vector<int64_t> nonfinite(clouds.size());
    std::vector<Classified> answers = classify_each(
        classifier, clouds.size(),
        [&](size_t i) {
            const PointCloud finite = drop_nonfinite(*clouds[i]);
            nonfinite[i] = clouds[i]->size() - finite.size();
            if (finite.size() == 0) throw Error(ErrorCode::bad_file, Place{name_of(i)}, "has no finite points");
            return network_points(finite, options);
        },
        name_of, {}, poses);
    for (size_t i = 0; i < answers.size(); ++i) answers[i].nonfinite = nonfinite[i];
    return answers;
}

}  // namespace stipple::tasks
