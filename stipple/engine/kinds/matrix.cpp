// Matrices of clouds and of points.

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/engine/cpu/piece.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/lower/reader.h"
#include "stipple/engine/program/check_program.h"

namespace stipple::engine {
namespace {

using lowering::Form;
using lowering::NetworkReader;
using network::Kind;
using network::Layer;

// === Layers

/// Becomes the matrix of the dense layer that reads it (cut_dense).
Form lower_transform(NetworkReader& reader, const Layer& layer) {
    lowering::Node node = lowering::make_node(lowering::NodeKind::transform, layer.name, layer.type);
    node.inputs = {{reader.rows(layer, 0)}, {reader.rows(layer, 1)}};
    return reader.graph.form_of(reader.graph.add(std::move(node)));
}

Form lower_add_identity(NetworkReader& reader, const Layer& layer) {
    Form out = reader.form(layer, 0);
    const auto count = out.bias.size();
    size_t k = 1;
    while (k * k < count) ++k;
    for (size_t i = 0; i < count; i += k + 1) out.bias[i] += 1;
    return out;
}

// === fold_matrix

void check_fold_matrix(const ProgramCheck& check, const Step& step) {
    const TensorType& matrix = check.only_numbers(step);
    const auto k = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(matrix.channels))));
    check.require(matrix.level == Level::cloud && k * k == matrix.channels, "needs a square matrix of each cloud");
    const auto size = static_cast<int64_t>(step.weight.size());
    check.require(size % k == 0, "its weight does not fit the matrix");
    check.finite(step.weight);
    check.expect(step, network::clouds_of(size == 0 ? k * k : size));
}

void run_fold_matrix(const cpu::Piece& piece) {
    const std::vector<float>& weight = piece.step.weight;
    const auto k = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(piece.channels(0)))));
    cpu::fold_matrix(weight.empty() ? nullptr : weight.data(), piece.input(0).data, k, piece.out().data, piece.begin,
                     piece.end);
}

// === rotation

void check_rotation(const ProgramCheck& check, const Step& step) {
    TensorType type = check.only_numbers(step);
    check.require(type.channels == 4, "needs quaternions");
    type.channels = 9;
    check.expect(step, type);
}

/// Divided by its largest magnitude first, so that squares neither vanish nor overflow.
void rotation_of(const float* q, bool inverse, float* out) {
    float largest = std::numeric_limits<float>::min();
    for (int i = 0; i < 4; ++i) largest = std::max(largest, std::abs(q[i]));
    const float w = q[0] / largest;
    const float v[3] = {q[1] / largest, q[2] / largest, q[3] / largest};
    const float square = w * w + v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    const float factor = 2 / std::max(square, std::numeric_limits<float>::min());  // zeros: the identity
    for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        out[4 * i] = 1 - factor * (v[j] * v[j] + v[k] * v[k]);
        const float same = factor * v[i] * v[j], turned = factor * w * v[k];
        out[3 * i + j] = inverse ? same + turned : same - turned;
        out[3 * j + i] = inverse ? same - turned : same + turned;
    }
}

void run_rotation(const cpu::Piece& piece) {
    const cpu::RowSource q = piece.input(0);
    for (int64_t r = piece.begin; r < piece.end; ++r) rotation_of(q.row(r), piece.step.inverse, piece.out().row(r));
}

constexpr lowering::LayerLowering kMatrixLayers[] = {
    {Kind::transform, lower_transform},
    {Kind::add_identity, lower_add_identity},
    {Kind::rotation, lowering::lower_to_step<StepKind::rotation>},
};
constexpr StepType kMatrixSteps[] = {
    {.kind = StepKind::fold_matrix,
     .name = "fold_matrix",
     .check = check_fold_matrix,
     .cut = cpu::Cut::matrix,
     .run = run_fold_matrix,
     .has_weight = true},
    {.kind = StepKind::rotation, .name = "rotation", .check = check_rotation, .run = run_rotation},
};

}  // namespace

KindGroup matrix_group() {
    return {kMatrixLayers, kMatrixSteps};
}

}  // namespace stipple::engine
