#include "stipple/tasks/classify.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/number_text.h"
#include "stipple/engine/program.h"

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

std::vector<Guess> ranked(std::span<const float> logits) {
    std::vector<Guess> guesses;
    if (logits.empty()) return guesses;
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
        guesses.push_back({static_cast<int64_t>(i), std::exp(logits[i] - largest)});
        sum += guesses.back().probability;
    }
    for (Guess& guess : guesses) guess.probability /= sum;
    std::stable_sort(guesses.begin(), guesses.end(),
                     [](const Guess& a, const Guess& b) { return a.probability > b.probability; });
    return guesses;
}

std::vector<Classified> classify(Classifier& classifier, const std::vector<data::CloudEntry>& entries,
                                 const CloudOptions& options, const data::ReadClouds& how, io::Warnings& warnings,
                                 const std::function<void()>& advance) {
    constexpr int64_t kPoints = int64_t{1} << 20;  // of a batch, unless one cloud alone has more
    const NetworkRunner& runner = classifier.runner();
    const int64_t most = std::min(kPoints, runner.max_points());
    std::vector<Classified> answers(entries.size());
    CloudBatch batch;
    std::vector<size_t> members;  // of the batch
    const auto flush = [&] {
        if (members.empty()) return;
        const std::vector<float> logits = classifier.run(batch);
        const auto classes = static_cast<size_t>(classifier.classes());
        for (size_t i = 0; i < members.size(); ++i)
            answers[members[i]].guesses = ranked(std::span(logits).subspan(i * classes, classes));
        batch.clear();
        members.clear();
    };
    for (size_t i = 0; i < entries.size(); ++i) {
        check_interrupted();
        try {
            const Array<float, 2> points = network_points(load_points(entries[i], options, how, warnings), options);
            const int64_t n = points.size(0);
            if (n > runner.max_points())
                throw Error(
                    ErrorCode::bad_file, Place{entries[i].name()},
                    fmt::format("{} points, the engine was built for {}", grouped(n), grouped(runner.max_points())));
            if (batch.clouds() == runner.max_batch() || batch.points() + n > most) flush();
            batch.add(points);
            members.push_back(i);
            answers[i].points = n;
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_file) throw;
            answers[i].error = error;
        }
        if (advance) advance();
    }
    flush();
    return answers;
}

}  // namespace stipple::tasks
