#include "stipple/tasks/agreement.h"

#include <algorithm>
#include <cmath>

#include "stipple/engine/program.h"

namespace stipple::tasks {
namespace {

int64_t winner_of(const float* row, int64_t channels) {
    return std::max_element(row, row + channels) - row;
}

}  // namespace

std::vector<std::pair<std::string, Array<float, 2>>> other_inputs(const engine::Program& program,
                                                                  const ops::Batch& batch) {
    std::vector<std::pair<std::string, Array<float, 2>>> inputs;
    for (const engine::Binding& input : program.inputs) {
        if (input.name == "points") continue;
        const network::TensorType& type = program.values[static_cast<size_t>(input.value)].type;
        const bool is_cloud = type.level == network::Level::cloud;
        Array<float, 2> rows({is_cloud ? batch.clouds() : batch.rows() * type.width, type.channels});
        std::fill_n(rows.data(), rows.elements(), 0.0f);
        for (int64_t i = 0; is_cloud && i < rows.size(0); ++i) rows.data()[i * type.channels + i % type.channels] = 1;
        inputs.emplace_back(input.name, std::move(rows));
    }
    return inputs;
}

Answers answers_of(const engine::Engine& engine, const CloudBatch& clouds) {
    const engine::Program& program = engine.program();
    const engine::Binding* answer = &program.outputs[0];
    for (const engine::Binding& output : program.outputs)
        if (output.name == "logits") answer = &output;
    const network::TensorType type = program.values[static_cast<size_t>(answer->value)].type;
    const Device device = engine.options().device;
    const int64_t most = engine.options().max_batch * engine.options().max_points;
    engine::Context context(engine);
    Answers answers;
    answers.channels = type.channels;
    for (int64_t begin = 0; begin < clouds.clouds();) {
        // As many clouds as fit.
        int64_t end = begin + 1;
        while (end < clouds.clouds() && end - begin < engine.options().max_batch &&
               clouds.offsets[static_cast<size_t>(end + 1)] - clouds.offsets[static_cast<size_t>(begin)] <= most)
            ++end;
        std::vector<int64_t> offsets;
        const int64_t first = clouds.offsets[static_cast<size_t>(begin)];
        for (int64_t i = begin; i <= end; ++i) offsets.push_back(clouds.offsets[static_cast<size_t>(i)] - first);
        const ops::Batch batch = ops::Batch::ragged(offsets);
        const Array<float, 2> points = clouds.points_on(device, begin, end);
        std::vector<std::pair<std::string, Array<float, 2>>> others = other_inputs(program, batch);
        std::vector<engine::Input> inputs = {{"points", points.view()}};
        for (auto& [name, rows] : others) {
            rows = rows.to(device);
            inputs.push_back({name, rows.view()});
        }
        const int64_t points_of = type.points > 0 ? batch.clouds() * type.points : batch.rows();
        const int64_t rows = type.level == network::Level::cloud ? batch.clouds() : points_of * type.width;
        Array<float, 2> out({rows, type.channels}, device);
        context.run(batch, inputs, {{answer->name, out.view()}});
        const Array<float, 2> host = out.to(Device{});
        answers.rows.insert(answers.rows.end(), host.data(), host.data() + host.elements());
        begin = end;
    }
    return answers;
}

Agreement compare(const Answers& answers, const Answers& reference) {
    Agreement agreement;
    double squares = 0, sum = 0, spread = 0;
    const auto count = static_cast<double>(reference.rows.size());
    for (size_t i = 0; i < reference.rows.size(); ++i) {
        const double difference = double{answers.rows[i]} - reference.rows[i];
        squares += difference * difference;
        sum += reference.rows[i];
        spread += double{reference.rows[i]} * reference.rows[i];
        agreement.max_error = std::max(agreement.max_error, std::abs(difference));
    }
    spread = std::sqrt(std::max(0.0, spread / count - (sum / count) * (sum / count)));
    agreement.error = std::sqrt(squares / count) / (spread > 0 ? spread : 1);
    const int64_t rows = static_cast<int64_t>(reference.rows.size()) / reference.channels;
    int64_t equal = 0;
    for (int64_t i = 0; i < rows; ++i)
        equal += winner_of(answers.rows.data() + i * answers.channels, answers.channels) ==
                 winner_of(reference.rows.data() + i * reference.channels, reference.channels);
    agreement.winners = static_cast<double>(equal) / static_cast<double>(rows);
    return agreement;
}

double accuracy_of(const Answers& answers, const std::vector<int64_t>& labels) {
    int64_t right = 0;
    for (size_t i = 0; i < labels.size(); ++i)
        right +=
            winner_of(answers.rows.data() + static_cast<int64_t>(i) * answers.channels, answers.channels) == labels[i];
    return static_cast<double>(right) / static_cast<double>(labels.size());
}

}  // namespace stipple::tasks
