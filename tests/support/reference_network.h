#pragma once
// The straightforward reading of a Network: every layer evaluated as it is written, one after the other, in double
// precision, nothing folded or fused. What the engine, the trainer and ONNX are compared with.

#include <string>
#include <string_view>
#include <vector>

#include "stipple/network/network.h"
#include "stipple/network/weights.h"
#include "stipple/ops/clouds.h"

namespace stipple::test {

struct ReferenceTensor {
    network::TensorType type;
    int64_t rows = 0;            // clouds, points, or points * width
    std::vector<double> values;  // [rows, channels]; indices count from the first point of their cloud

    const double* row(int64_t i) const { return values.data() + i * type.channels; }
    double* row(int64_t i) { return values.data() + i * type.channels; }
};

struct ReferenceInput {
    std::string_view name;
    View<const float, 2> rows;  // on the CPU
};

/// all: the outputs of every layer stay, which takes some hundred MB for a patch of PU-Flow. outputs: those alone.
enum class Keep { all, outputs };

class ReferenceRun {
public:
    /// By the name of a layer, or of an output of the network. Throws for a name that is not there.
    const ReferenceTensor& layer(std::string_view name) const;
    const ReferenceTensor& output(std::string_view name) const;

    const network::Network* network = nullptr;  // of the caller
    std::vector<ReferenceTensor> tensors;       // one for each layer
};

/// The batch of each point set: one is given for each set of the caller, in ascending order; those that the network
/// makes have their own. A network without points of the caller takes its number of clouds from the first.
std::vector<ops::Batch> batches_of(const network::Network& network, const std::vector<ops::Batch>& given);

/// The weights must fit the network, every input must be there, and a cloud must have the neighbours that knn wants.
/// Distances of knn are rounded to float32 as the contract of ops::knn says, so that ties fall the same way.
ReferenceRun run_reference(const network::Network& network, const network::Weights& weights, const ops::Batch& batch,
                           const std::vector<ReferenceInput>& inputs, Keep keep = Keep::outputs);
ReferenceRun run_reference(const network::Network& network, const network::Weights& weights,
                           const std::vector<ops::Batch>& given, const std::vector<ReferenceInput>& inputs,
                           Keep keep = Keep::outputs);

}  // namespace stipple::test
