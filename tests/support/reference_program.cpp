#include "tests/support/reference_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"

namespace stipple::test {
namespace {

using engine::Access;
using engine::ActivationKind;
using engine::Dense;
using engine::Level;
using engine::Program;
using engine::Reduce;
using engine::Source;
using engine::Step;
using engine::StepKind;
using engine::TensorType;
using engine::Value;

double activate(const engine::Activation& activation, double x) {
    if (activation.kind == ActivationKind::none || x >= 0) return x;
    return activation.kind == ActivationKind::relu ? 0 : x * activation.slope;
}

/// Four sums side by side: additions need not wait for each other.
template <class T>
double product(const std::vector<double>& x, const T* weight) {
    double sums[4] = {};
    const size_t whole = x.size() / 4 * 4;
    for (size_t i = 0; i < whole; i += 4)
        for (size_t j = 0; j < 4; ++j) sums[j] += x[i + j] * weight[i + j];
    for (size_t i = whole; i < x.size(); ++i) sums[0] += x[i] * weight[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

class Runner {
public:
    Runner(const Program& program, const ops::Batch& batch)
        : program_(program), batch_(batch), values_(program.values.size()) {
        for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
            for (int64_t i = 0; i < batch.size(cloud); ++i) cloud_of_point_.push_back(cloud);
    }

    void set_input(Value value, View<const float, 2> rows) {
        ReferenceTensor& tensor = make(value);
        STIPPLE_ASSERT(rows.size(0) == tensor.rows && rows.size(1) == tensor.type.channels);
        for (int64_t r = 0; r < tensor.rows; ++r)
            for (int64_t c = 0; c < tensor.type.channels; ++c) tensor.row(r)[c] = rows(r, c);
    }

    void run(const Step& step) {
        ReferenceTensor& out = make(step.output);
        switch (step.kind) {
            case StepKind::chain: return chain(step, out);
            case StepKind::fold_matrix: return fold_matrix(step, out);
            case StepKind::knn: return knn(step, out);
            case StepKind::first_neighbours:
                for (int64_t r = 0; r < out.rows; ++r)
                    out.row(r)[0] =
                        in(step, 0).row(r / out.type.width * in(step, 0).type.width + r % out.type.width)[0];
                return;
            case StepKind::edge_distance: return edge_distance(step, out);
            case StepKind::gather: return gather(step, out);
            case StepKind::max_points: return reduce(in(step, 0), true, out);
            case StepKind::max_rows: return reduce(in(step, 0), true, out);
            case StepKind::sum_points: return reduce(in(step, 0), false, out);
            case StepKind::copy: return copy(step, out);
            case StepKind::softmax_rows: return softmax_rows(step, out);
            case StepKind::interpolate: return interpolate(step, out);
            default: break;
        }
        for (int64_t r = 0; r < out.rows; ++r) row_step(step, out, r);
    }

    std::vector<ReferenceTensor> take() { return std::move(values_); }

private:
    int64_t rows_of(const TensorType& type) const {
        return type.level == Level::cloud ? batch_.clouds() : batch_.rows() * type.width;
    }

    ReferenceTensor& make(Value value) {
        ReferenceTensor& tensor = values_[static_cast<size_t>(value)];
        tensor.type = program_.values[static_cast<size_t>(value)].type;
        tensor.rows = rows_of(tensor.type);
        tensor.values.assign(static_cast<size_t>(tensor.rows * tensor.type.channels), 0.0);
        return tensor;
    }

    const ReferenceTensor& at(Value value) const {
        const ReferenceTensor& tensor = values_[static_cast<size_t>(value)];
        STIPPLE_ASSERT(tensor.type.channels > 0);  // was computed before
        return tensor;
    }

    /// Of a kind whose inputs are rows.
    const ReferenceTensor& in(const Step& step, size_t i) const {
        STIPPLE_ASSERT(step.inputs[i].access == Access::row);
        return at(step.inputs[i].value);
    }

    int64_t cloud_of(Level level, int64_t width, int64_t row) const {
        return level == Level::cloud ? row : cloud_of_point_[static_cast<size_t>(row / width)];
    }

    /// The row of a source that row r of a step with these rows sees.
    const double* row_of(const Source& source, Level level, int64_t width, int64_t r) const {
        const ReferenceTensor& tensor = at(source.value);
        switch (source.access) {
            case Access::row:
                STIPPLE_ASSERT(tensor.type.level == level && tensor.type.width == width);
                return tensor.row(r);
            case Access::cloud:
                STIPPLE_ASSERT(tensor.type.level == Level::cloud);
                return tensor.row(cloud_of(level, width, r));
            case Access::point:
                STIPPLE_ASSERT(tensor.type.level == Level::point && tensor.type.width == 1 && level == Level::point);
                return tensor.row(r / width);
            case Access::neighbour: {
                const ReferenceTensor& indices = at(source.indices);
                STIPPLE_ASSERT(indices.type.is_index && indices.type.width == width && tensor.type.width == 1);
                return tensor.row(batch_.begin(cloud_of(level, width, r)) + static_cast<int64_t>(*indices.row(r)));
            }
        }
        return nullptr;
    }

    void chain(const Step& step, ReferenceTensor& out) {
        ReferenceTensor x;
        x.type = {step.level, step.width, step.layers.back().out};
        x.rows = rows_of(x.type);
        x.values.resize(static_cast<size_t>(x.rows * x.type.channels));
        parallel_for(x.rows, 16, [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
                std::vector<double> row;
                for (size_t i = 0; i < step.layers.size(); ++i)
                    row = dense(step, step.layers[i], i == 0, r, std::move(row));
                std::copy(row.begin(), row.end(), x.row(r));
            }
        });
        if (step.reduce == Reduce::none)
            out.values = std::move(x.values);
        else
            reduce(x, true, out);
    }

    std::vector<double> dense(const Step& step, const Dense& layer, bool is_first, int64_t r, std::vector<double> x) {
        STIPPLE_ASSERT(is_first || (layer.parts.empty() && layer.addends.empty()));
        for (const Source& part : layer.parts) {
            STIPPLE_ASSERT(part.access == Access::row);
            const double* row = row_of(part, step.level, step.width, r);
            x.insert(x.end(), row, row + at(part.value).type.channels);
        }
        STIPPLE_ASSERT(static_cast<int64_t>(x.size()) == layer.in);
        std::vector<double> y(layer.bias.begin(), layer.bias.end());
        STIPPLE_ASSERT(static_cast<int64_t>(y.size()) == layer.out);
        const bool has_matrix = layer.matrix >= 0;
        const double* matrix = has_matrix ? at(layer.matrix).row(cloud_of(step.level, step.width, r)) : nullptr;
        STIPPLE_ASSERT(has_matrix ? layer.weight.empty() && layer.parts.size() <= 1
                                  : static_cast<int64_t>(layer.weight.size()) == layer.in * layer.out);
        for (int64_t o = 0; o < layer.out; ++o) {
            double& sum = y[static_cast<size_t>(o)];
            sum += has_matrix ? product(x, matrix + o * layer.in) : product(x, layer.weight.data() + o * layer.in);
            for (const Source& addend : layer.addends) {
                STIPPLE_ASSERT(at(addend.value).type.channels == layer.out);
                sum += row_of(addend, step.level, step.width, r)[o];
            }
            sum = activate(layer.activation, sum);
        }
        return y;
    }

    void fold_matrix(const Step& step, ReferenceTensor& out) {
        const ReferenceTensor& matrix = in(step, 0);
        const auto k = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(matrix.type.channels))));
        const int64_t outputs = out.type.channels / k;
        STIPPLE_ASSERT(step.weight.empty() ? outputs == k : static_cast<int64_t>(step.weight.size()) == outputs * k);
        for (int64_t cloud = 0; cloud < out.rows; ++cloud) {
            const double* t = matrix.row(cloud);
            for (int64_t o = 0; o < outputs; ++o)
                for (int64_t j = 0; j < k; ++j) {
                    double sum = step.weight.empty() ? t[j * k + o] : 0;
                    for (int64_t i = 0; i < k && !step.weight.empty(); ++i)
                        sum += step.weight[static_cast<size_t>(o * k + i)] * t[j * k + i];
                    out.row(cloud)[o * k + j] = sum;
                }
        }
    }

    /// Max or sum over the rows of each cloud, or of each point, whichever the output has.
    void reduce(const ReferenceTensor& x, bool is_max, ReferenceTensor& out) {
        if (is_max) std::fill(out.values.begin(), out.values.end(), -std::numeric_limits<double>::infinity());
        for (int64_t r = 0; r < x.rows; ++r) {
            double* to =
                out.row(out.type.level == Level::cloud ? cloud_of(x.type.level, x.type.width, r) : r / x.type.width);
            for (int64_t c = 0; c < x.type.channels; ++c)
                to[c] = is_max ? std::max(to[c], x.row(r)[c]) : to[c] + x.row(r)[c];
        }
    }

    void knn(const Step& step, ReferenceTensor& out) {
        const ReferenceTensor& x = in(step, 0);
        const int64_t k = out.type.width;
        for (int64_t point = 0; point < batch_.rows(); ++point) {
            const int64_t cloud = cloud_of_point_[static_cast<size_t>(point)], first = batch_.begin(cloud);
            std::vector<std::pair<float, int64_t>> found;
            for (int64_t j = 0; j < batch_.size(cloud); ++j) {
                float sum = 0;
                for (int64_t c = 0; c < x.type.channels; ++c) {
                    const float d = static_cast<float>(x.row(point)[c]) - static_cast<float>(x.row(first + j)[c]);
                    sum += d * d;
                }
                if (std::isfinite(sum)) found.emplace_back(sum, j);
            }
            STIPPLE_ASSERT(k <= batch_.size(cloud));
            std::sort(found.begin(), found.end());
            found.resize(static_cast<size_t>(batch_.size(cloud)), {0, point - first});  // missing: the point itself
            for (int64_t j = 0; j < k; ++j)
                *out.row(point * k + j) = static_cast<double>(found[static_cast<size_t>(j)].second);
        }
    }

    void edge_distance(const Step& step, ReferenceTensor& out) {
        const ReferenceTensor &x = in(step, 0), &indices = at(step.inputs[1].value);
        const int64_t c = x.type.channels, k = indices.type.width;
        for (int64_t r = 0; r < out.rows; ++r) {
            const double *self = x.row(r / k), *other = x.row(batch_.begin(cloud_of(Level::point, k, r)) +
                                                              static_cast<int64_t>(*indices.row(r)));
            double squared = 0;
            for (int64_t i = 0; i < c; ++i) {
                out.row(r)[i] = self[i];
                out.row(r)[c + i] = other[i];
                out.row(r)[2 * c + i] = self[i] - other[i];
                squared += (self[i] - other[i]) * (self[i] - other[i]);
            }
            out.row(r)[3 * c] = std::sqrt(squared);
        }
    }

    void gather(const Step& step, ReferenceTensor& out) {
        const Source source{step.inputs[0].value, Access::neighbour, step.inputs[1].value};
        for (int64_t r = 0; r < out.rows; ++r)
            std::copy_n(row_of(source, Level::point, out.type.width, r), out.type.channels, out.row(r));
    }

    void copy(const Step& step, ReferenceTensor& out) {
        for (int64_t r = 0; r < out.rows; ++r) {
            double* to = out.row(r);
            for (const Source& source : step.inputs)
                to = std::copy_n(row_of(source, out.type.level, out.type.width, r), at(source.value).type.channels, to);
            STIPPLE_ASSERT(to == out.row(r) + out.type.channels);
        }
    }

    void softmax_rows(const Step& step, ReferenceTensor& out) {
        const ReferenceTensor& x = in(step, 0);
        const int64_t width = x.type.width;
        for (int64_t point = 0; point < batch_.rows(); ++point)
            for (int64_t c = 0; c < x.type.channels; ++c) {
                double largest = -std::numeric_limits<double>::infinity(), sum = 0;
                for (int64_t j = 0; j < width; ++j) largest = std::max(largest, x.row(point * width + j)[c]);
                for (int64_t j = 0; j < width; ++j) sum += std::exp(x.row(point * width + j)[c] - largest);
                for (int64_t j = 0; j < width; ++j)
                    out.row(point * width + j)[c] = std::exp(x.row(point * width + j)[c] - largest) / sum;
            }
    }

    void interpolate(const Step& step, ReferenceTensor& out) {
        const ReferenceTensor &weights = in(step, 0), &x = in(step, 1);
        const int64_t k = weights.type.width, children = weights.type.channels;
        for (int64_t point = 0; point < batch_.rows(); ++point)
            for (int64_t child = 0; child < children; ++child)
                for (int64_t j = 0; j < k; ++j)
                    for (int64_t c = 0; c < x.type.channels; ++c)
                        out.row(point * children + child)[c] +=
                            weights.row(point * k + j)[child] * x.row(point * k + j)[c];
    }

    void row_step(const Step& step, ReferenceTensor& out, int64_t r) {
        double* to = out.row(r);
        const int64_t channels = out.type.channels;
        const auto source = [&](size_t i) { return row_of(step.inputs[i], out.type.level, out.type.width, r); };
        switch (step.kind) {
            case StepKind::sum_channels: {
                const ReferenceTensor& x = in(step, 0);
                for (int64_t c = 0; c < x.type.channels; ++c) to[0] += x.row(r)[c];
                return;
            }
            case StepKind::slice:
                STIPPLE_ASSERT(step.begin >= 0 && step.end - step.begin == channels);
                std::copy(in(step, 0).row(r) + step.begin, in(step, 0).row(r) + step.end, to);
                return;
            case StepKind::reverse: std::reverse_copy(source(0), source(0) + channels, to); return;
            case StepKind::log_softmax: {
                double sum = 0;
                const double largest = *std::max_element(source(0), source(0) + channels);
                for (int64_t c = 0; c < channels; ++c) sum += std::exp(source(0)[c] - largest);
                for (int64_t c = 0; c < channels; ++c) to[c] = source(0)[c] - largest - std::log(sum);
                return;
            }
            case StepKind::activation:
                for (int64_t c = 0; c < channels; ++c) to[c] = activate(step.activation, source(0)[c]);
                return;
            case StepKind::add:
                for (int64_t c = 0; c < channels; ++c)
                    to[c] = in(step, 0).row(r)[c] + step.factor * in(step, 1).row(r)[c];
                return;
            case StepKind::couple:
                STIPPLE_ASSERT(step.begin >= 0 && in(step, 1).type.channels == channels - step.begin);
                for (int64_t c = 0; c < channels; ++c)
                    to[c] =
                        in(step, 0).row(r)[c] + (c < step.begin ? 0 : step.factor * in(step, 1).row(r)[c - step.begin]);
                return;
            case StepKind::inject:
                for (int64_t c = 0; c < channels; ++c) {
                    const double x = in(step, 0).row(r)[c], s = source(1)[c], b = source(2)[c];
                    to[c] = step.inverse ? x * std::exp(s) + b : (x - b) * std::exp(-s);
                }
                return;
            case StepKind::log_det: to[0] = step.factor * static_cast<double>(batch_.size(r)); return;
            case StepKind::gaussian_log_density: {
                const ReferenceTensor& z = in(step, 0);
                for (int64_t i = batch_.begin(r) * z.type.width; i < batch_.end(r) * z.type.width; ++i)
                    for (int64_t c = 0; c < z.type.channels; ++c)
                        to[0] -= (z.row(i)[c] * z.row(i)[c] + std::log(2 * std::numbers::pi)) / 2;
                return;
            }
            default: STIPPLE_ASSERT(false);
        }
    }

    const Program& program_;
    const ops::Batch& batch_;
    std::vector<int64_t> cloud_of_point_;
    std::vector<ReferenceTensor> values_;
};

}  // namespace

std::vector<ReferenceTensor> run_reference(const Program& program, const ops::Batch& batch,
                                           const std::vector<ReferenceInput>& inputs) {
    Runner runner(program, batch);
    for (const engine::Binding& binding : program.inputs) {
        const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const ReferenceInput& candidate) {
            return candidate.name == binding.name;
        });
        STIPPLE_ASSERT(input != inputs.end());
        runner.set_input(binding.value, input->rows);
    }
    for (const Step& step : program.steps) runner.run(step);
    return runner.take();
}

const ReferenceTensor& output_of(const Program& program, const std::vector<ReferenceTensor>& values,
                                 std::string_view name) {
    for (const engine::Binding& output : program.outputs)
        if (output.name == name) return values[static_cast<size_t>(output.value)];
    throw Error(ErrorCode::bad_argument, fmt::format("the program has no output '{}'", name));
}

}  // namespace stipple::test
