#include "stipple/radiance/cpu/network.h"

#define EIGEN_DONT_PARALLELIZE  // batches run side by side
#include <Eigen/Core>

namespace stipple::radiance::cpu {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<Matrix>;
using ConstRows = Eigen::Map<const Matrix>;
using ConstRow = Eigen::Map<const Eigen::RowVectorXf>;
using Row = Eigen::Map<Eigen::RowVectorXf>;

Rows rows_of(std::vector<float>& values, int64_t rows, int64_t columns) {
    values.resize(static_cast<size_t>(rows * columns));
    return Rows(values.data(), rows, columns);
}

}  // namespace

void forward(const float* numbers, int64_t samples, NetworkBatch& batch) {
    const Rows inputs = rows_of(batch.inputs, samples, kNetworkInputs);
    Rows hidden1 = rows_of(batch.hidden1, samples, kHidden), hidden2 = rows_of(batch.hidden2, samples, kHidden);
    Rows outputs = rows_of(batch.outputs, samples, 3);
    hidden1.noalias() = inputs * ConstRows(numbers, kHidden, kNetworkInputs).transpose();
    hidden1 = hidden1.cwiseMax(0.0f);
    hidden2.noalias() = hidden1 * ConstRows(numbers + kWeight2, kHidden, kHidden).transpose();
    hidden2 = (hidden2.rowwise() + ConstRow(numbers + kBias2, kHidden)).cwiseMax(0.0f);
    outputs.noalias() = hidden2 * ConstRows(numbers + kWeight3, 3, kHidden).transpose();
    outputs.rowwise() += ConstRow(numbers + kBias3, 3);
}

void backward(const float* numbers, int64_t samples, NetworkBatch& batch, float* gradients) {
    const Rows inputs = rows_of(batch.inputs, samples, kNetworkInputs);
    const Rows hidden1 = rows_of(batch.hidden1, samples, kHidden), hidden2 = rows_of(batch.hidden2, samples, kHidden);
    const Rows outputs = rows_of(batch.outputs, samples, 3);
    Rows gradient1 = rows_of(batch.gradient1, samples, kHidden), gradient2 = rows_of(batch.gradient2, samples, kHidden);
    Rows(gradients + kWeight3, 3, kHidden).noalias() += outputs.transpose() * hidden2;
    Row(gradients + kBias3, 3) += outputs.colwise().sum();
    gradient2.noalias() = outputs * ConstRows(numbers + kWeight3, 3, kHidden);
    gradient2 = (hidden2.array() > 0).select(gradient2, 0.0f);
    Rows(gradients + kWeight2, kHidden, kHidden).noalias() += gradient2.transpose() * hidden1;
    Row(gradients + kBias2, kHidden) += gradient2.colwise().sum();
    gradient1.noalias() = gradient2 * ConstRows(numbers + kWeight2, kHidden, kHidden);
    gradient1 = (hidden1.array() > 0).select(gradient1, 0.0f);
    Rows(gradients, kHidden, kNetworkInputs).noalias() += gradient1.transpose() * inputs;
    rows_of(batch.input_gradients, samples, kNetworkInputs).noalias() =
        gradient1 * ConstRows(numbers, kHidden, kNetworkInputs);
}

}  // namespace stipple::radiance::cpu
