// One matrix a cloud.

#include <cmath>

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

constexpr lowering::LayerLowering kMatrixLayers[] = {
    {Kind::transform, lower_transform},
    {Kind::add_identity, lower_add_identity},
};
constexpr StepType kMatrixSteps[] = {
    {.kind = StepKind::fold_matrix,
     .name = "fold_matrix",
     .check = check_fold_matrix,
     .cut = cpu::Cut::matrix,
     .run = run_fold_matrix,
     .has_weight = true},
};

}  // namespace

KindGroup matrix_group() {
    return {kMatrixLayers, kMatrixSteps};
}

}  // namespace stipple::engine
