#include "tests/engine/program_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/engine/chain_reference.h"

namespace stipple::test {

using namespace engine;

int64_t rows_in(const TensorType& type, const ops::Batch& batch) {
    return type.level == Level::cloud ? batch.clouds() : batch.rows() * type.width;
}

namespace {

class Interpreter {
public:
    Interpreter(const Program& program, const ops::Batch& batch) : program_(program), batch_(batch) {
        for (const ValueInfo& value : program.values)
            values_.emplace_back(static_cast<size_t>(rows_in(value.type, batch) * value.type.channels), NAN);
    }

    std::vector<std::vector<float>> values_;

    void run(const Step& step) {
        for (int64_t cloud = 0; cloud < batch_.clouds(); ++cloud) run(step, cloud);
    }

private:
    const Program& program_;
    const ops::Batch& batch_;

    const TensorType& type(Value value) const { return program_.values[static_cast<size_t>(value)].type; }
    int64_t channels(const Source& source) const { return type(source.value).channels; }

    // Row r of a value's rows in one cloud.
    float* row(Value value, int64_t cloud, int64_t r) {
        const TensorType& t = type(value);
        const int64_t first = t.level == Level::cloud ? cloud : batch_.begin(cloud) * t.width;
        return values_[static_cast<size_t>(value)].data() + (first + r) * t.channels;
    }
    // What row r of a step, of which there are `width` a point, reads.
    float* row(const Source& source, int64_t cloud, int64_t r, int64_t width) {
        switch (source.access) {
            case Access::row: return row(source.value, cloud, r);
            case Access::cloud: return row(source.value, cloud, 0);
            case Access::point: return row(source.value, cloud, r / width);
            case Access::neighbour:
                return row(source.value, cloud, static_cast<int64_t>(*row(source.indices, cloud, r)));
        }
        return nullptr;
    }

    void run(const Step& step, int64_t cloud);
    void run_chain(const Step& step, int64_t cloud);
    void run_knn(const Step& step, int64_t cloud);
    void run_row(const Step& step, int64_t cloud, int64_t r, int64_t width, float* out);
    void run_cloud(const Step& step, int64_t cloud, float* out);
    void run_point(const Step& step, int64_t cloud, int64_t p);
};

void Interpreter::run(const Step& step, int64_t cloud) {
    const TensorType& out = type(step.output);
    const int64_t n = batch_.size(cloud);
    switch (step.kind) {
        case StepKind::chain: return run_chain(step, cloud);
        case StepKind::knn: return run_knn(step, cloud);
        case StepKind::fold_matrix:
        case StepKind::max_points:
        case StepKind::sum_points:
        case StepKind::log_det:
        case StepKind::gaussian_log_density: return run_cloud(step, cloud, row(step.output, cloud, 0));
        case StepKind::max_rows:
        case StepKind::softmax_rows:
        case StepKind::interpolate:
            for (int64_t p = 0; p < n; ++p) run_point(step, cloud, p);
            return;
        default:
            for (int64_t r = 0; r < (out.level == Level::cloud ? 1 : n * out.width); ++r)
                run_row(step, cloud, r, out.width, row(step.output, cloud, r));
    }
}

void Interpreter::run_chain(const Step& step, int64_t cloud) {
    const int64_t rows = step.level == Level::cloud ? 1 : batch_.size(cloud) * step.width;
    const int64_t out = step.layers.back().out;
    std::vector<const float*> matrices;
    for (const Dense& layer : step.layers) matrices.push_back(layer.matrix < 0 ? nullptr : row(layer.matrix, cloud, 0));
    if (step.reduce != Reduce::none) {
        const int64_t points = step.reduce == Reduce::max_points ? 1 : batch_.size(cloud);
        for (int64_t p = 0; p < points; ++p)
            std::fill_n(row(step.output, cloud, p), out, -std::numeric_limits<float>::infinity());
    }
    for (int64_t r = 0; r < rows; ++r) {
        // One row at a time: every access is resolved here, and none in the chain.
        const Dense& first = step.layers.front();
        std::vector<cpu::ChainPart> parts;
        for (const Source& part : first.parts) parts.push_back({row(part, cloud, r, step.width), 0, channels(part)});
        std::vector<cpu::ChainAddend> addends;
        for (const Source& addend : first.addends)
            addends.push_back({row(addend, cloud, r, step.width), 0, Access::row, 1, nullptr});
        cpu::ChainTask task;
        task.rows = 1;
        task.parts = parts;
        task.addends = addends;
        task.matrices = matrices;
        std::vector<float> raw(static_cast<size_t>(out), -std::numeric_limits<float>::infinity());
        task.out = raw.data();
        task.out_stride = out;
        run_chain_reference(step.layers, Reduce::max_points, task);
        finish_chain_reference(step.layers, raw.data());
        const int64_t at = step.reduce == Reduce::max_points ? 0 : step.reduce == Reduce::max_rows ? r / step.width : r;
        float* to = row(step.output, cloud, at);
        for (int64_t o = 0; o < out; ++o)
            to[o] = step.reduce == Reduce::none ? raw[static_cast<size_t>(o)]
                                                : std::max(to[o], raw[static_cast<size_t>(o)]);
    }
}

void Interpreter::run_knn(const Step& step, int64_t cloud) {
    const int64_t n = batch_.size(cloud), c = channels(step.inputs[0]);
    const int64_t k = type(step.output).width * type(step.output).channels;
    for (int64_t i = 0; i < n; ++i) {
        std::vector<std::pair<float, int64_t>> found;
        for (int64_t j = 0; j < n; ++j) {
            const float *a = row(step.inputs[0].value, cloud, i), *b = row(step.inputs[0].value, cloud, j);
            float d2 = 0;
            for (int64_t x = 0; x < c; ++x) d2 += (a[x] - b[x]) * (a[x] - b[x]);
            if (std::isfinite(d2)) found.emplace_back(d2, j);
        }
        std::sort(found.begin(), found.end());
        for (int64_t j = 0; j < k; ++j)
            *row(step.output, cloud, i * k + j) =
                static_cast<float>(j < static_cast<int64_t>(found.size()) ? found[static_cast<size_t>(j)].second : i);
    }
}

void Interpreter::run_row(const Step& step, int64_t cloud, int64_t r, int64_t width, float* out) {
    const auto in = [&](size_t i) { return row(step.inputs[i], cloud, r, width); };
    const auto neighbour = [&] {
        return row(step.inputs[0].value, cloud, static_cast<int64_t>(*row(step.inputs[1].value, cloud, r)));
    };
    const int64_t c = channels(step.inputs[0]);
    const float* x =
        step.inputs[0].access == Access::row && type(step.inputs[0].value).width != width ? nullptr : in(0);
    switch (step.kind) {
        case StepKind::copy:
            for (size_t i = 0; i < step.inputs.size(); ++i) out = std::copy_n(in(i), channels(step.inputs[i]), out);
            return;
        case StepKind::slice: std::copy(x + step.begin, x + step.end, out); return;
        case StepKind::reverse:
            for (int64_t i = 0; i < c; ++i) out[i] = x[c - 1 - i];
            return;
        case StepKind::gather: std::copy_n(neighbour(), c, out); return;
        case StepKind::edge_distance: {
            const float *a = row(step.inputs[0].value, cloud, r / width), *b = neighbour();
            double sum = 0;
            for (int64_t i = 0; i < c; ++i) {
                out[i] = a[i];
                out[c + i] = b[i];
                out[2 * c + i] = a[i] - b[i];
                sum += std::pow(static_cast<double>(a[i] - b[i]), 2);
            }
            out[3 * c] = static_cast<float>(std::sqrt(sum));
            return;
        }
        case StepKind::activation:
            for (int64_t i = 0; i < c; ++i)
                out[i] = x[i] > 0 || step.activation.kind == ActivationKind::none ? x[i]
                         : step.activation.kind == ActivationKind::relu           ? 0
                                                                                  : x[i] * step.activation.slope;
            return;
        case StepKind::add:
            for (int64_t i = 0; i < c; ++i) out[i] = x[i] + step.factor * in(1)[i];
            return;
        case StepKind::couple:
            for (int64_t i = 0; i < c; ++i) out[i] = i < step.begin ? x[i] : x[i] + step.factor * in(1)[i - step.begin];
            return;
        case StepKind::inject:
            for (int64_t i = 0; i < c; ++i)
                out[i] =
                    static_cast<float>(step.inverse ? x[i] * std::exp(static_cast<double>(in(1)[i])) + in(2)[i]
                                                    : (x[i] - in(2)[i]) * std::exp(-static_cast<double>(in(1)[i])));
            return;
        case StepKind::sum_channels: {
            double sum = 0;
            for (int64_t i = 0; i < c; ++i) sum += x[i];
            *out = static_cast<float>(sum);
            return;
        }
        case StepKind::log_softmax: {
            double sum = 0;
            const float most = *std::max_element(x, x + c);
            for (int64_t i = 0; i < c; ++i) sum += std::exp(static_cast<double>(x[i]) - most);
            for (int64_t i = 0; i < c; ++i) out[i] = static_cast<float>(x[i] - most - std::log(sum));
            return;
        }
        default: std::abort();  // not a step by rows
    }
}

void Interpreter::run_cloud(const Step& step, int64_t cloud, float* out) {
    if (step.kind == StepKind::log_det) {
        *out = step.factor * static_cast<float>(batch_.size(cloud));
        return;
    }
    const TensorType& in = type(step.inputs[0].value);
    const int64_t rows = in.level == Level::cloud ? 1 : batch_.size(cloud) * in.width;
    const auto x = [&](int64_t r, int64_t c) { return row(step.inputs[0].value, cloud, r)[c]; };
    if (step.kind == StepKind::fold_matrix) {
        const auto k = static_cast<int64_t>(std::lround(std::sqrt(in.channels)));
        for (int64_t o = 0; o < type(step.output).channels / k; ++o)
            for (int64_t j = 0; j < k; ++j) {
                double sum = 0;
                for (int64_t i = 0; i < k; ++i)
                    sum += (step.weight.empty() ? (o == i ? 1.0 : 0.0)
                                                : static_cast<double>(step.weight[static_cast<size_t>(o * k + i)])) *
                           x(0, j * k + i);
                out[o * k + j] = static_cast<float>(sum);
            }
        return;
    }
    double density = 0;
    for (int64_t c = 0; c < in.channels; ++c) {
        double sum = 0, most = -std::numeric_limits<double>::infinity();
        for (int64_t r = 0; r < rows; ++r) {
            sum += x(r, c);
            most = std::max<double>(most, x(r, c));
            density -= 0.5 * (static_cast<double>(x(r, c)) * x(r, c) + std::log(2 * std::numbers::pi));
        }
        if (step.kind == StepKind::max_points) out[c] = static_cast<float>(most);
        if (step.kind == StepKind::sum_points) out[c] = static_cast<float>(sum);
    }
    if (step.kind == StepKind::gaussian_log_density) *out = static_cast<float>(density);
}

void Interpreter::run_point(const Step& step, int64_t cloud, int64_t p) {
    const TensorType& in = type(step.inputs[0].value);
    const auto x = [&](int64_t j, int64_t c) { return row(step.inputs[0].value, cloud, p * in.width + j)[c]; };
    for (int64_t c = 0; c < in.channels; ++c) {
        float most = -std::numeric_limits<float>::infinity();
        for (int64_t j = 0; j < in.width; ++j) most = std::max(most, x(j, c));
        double sum = 0;
        for (int64_t j = 0; j < in.width; ++j) sum += std::exp(static_cast<double>(x(j, c)) - most);
        if (step.kind == StepKind::max_rows) row(step.output, cloud, p)[c] = most;
        if (step.kind == StepKind::softmax_rows)
            for (int64_t j = 0; j < in.width; ++j)
                row(step.output, cloud, p * in.width + j)[c] =
                    static_cast<float>(std::exp(static_cast<double>(x(j, c)) - most) / sum);
        if (step.kind == StepKind::interpolate)  // c is the child
            for (int64_t v = 0; v < type(step.output).channels; ++v) {
                double value = 0;
                for (int64_t j = 0; j < in.width; ++j)
                    value += static_cast<double>(x(j, c)) * row(step.inputs[1], cloud, p * in.width + j, in.width)[v];
                row(step.output, cloud, p * in.channels + c)[v] = static_cast<float>(value);
            }
    }
}

}  // namespace

std::vector<std::vector<float>> run_program_reference(const Program& program, const ops::Batch& batch,
                                                      const std::vector<std::vector<float>>& inputs) {
    Interpreter interpreter(program, batch);
    for (size_t i = 0; i < inputs.size(); ++i)
        interpreter.values_[static_cast<size_t>(program.inputs[i].value)] = inputs[i];
    for (const Step& step : program.steps) interpreter.run(step);
    return std::move(interpreter.values_);
}

}  // namespace stipple::test
