#include "stipple/tasks/sample/critical_points.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/ops/linear_max.h"

namespace stipple::tasks {
namespace {

using network::Layer;
using network::Network;
using network::Weights;

/// The layers up to and with `last`, whose output they give, and the weights that belong to them.
models::Model beginning_of(const models::Model& model, network::Tensor last) {
    models::Model beginning;
    beginning.network = model.network;
    beginning.network.layers.resize(static_cast<size_t>(last) + 1);
    beginning.network.outputs = {{kPointFeatures, last}};
    beginning.weights.metadata = model.weights.metadata;
    beginning.weights.metadata.erase("stipple.calibration");
    for (const network::Parameter& parameter : parameters_of(beginning.network))
        beginning.weights.tensors.emplace(parameter.name, model.weights.tensors.at(parameter.name));
    return beginning;
}

/// The layer with its batch norm in weight and bias.
CriticalLayer folded(const models::Model& model, const Layer& layer) {
    const auto values = [&](const char* name) -> const std::vector<float>& {
        return model.weights.tensors.at(layer.parameters + name).values;
    };
    const int64_t channels = layer.type.channels, inputs = model.network[layer.inputs[0]].type.channels;
    CriticalLayer critical;
    critical.weight = Array<float, 2>({channels, inputs});
    critical.bias.assign(static_cast<size_t>(channels), 0);
    critical.is_rectified = layer.options.activation.kind == network::ActivationKind::relu;
    for (int64_t c = 0; c < channels; ++c) {
        const auto at = static_cast<size_t>(c);
        double scale = 1, bias = layer.options.bias ? values(".bias")[at] : 0;
        if (layer.options.norm) {
            scale = values(".norm.weight")[at] /
                    std::sqrt(double{values(".norm.running_var")[at]} + layer.options.norm_eps);
            bias = (bias - values(".norm.running_mean")[at]) * scale + values(".norm.bias")[at];
        }
        critical.bias[at] = static_cast<float>(bias);
        for (int64_t i = 0; i < inputs; ++i)
            critical.weight.view()(c, i) =
                static_cast<float>(scale * values(".weight")[static_cast<size_t>(c * inputs + i)]);
    }
    return critical;
}

/// The points of one cloud by the number of channels that they win.
void rank(const CriticalLayer& layer, const float* largest, const int32_t* winners, int64_t n, int32_t* ranked) {
    const int64_t channels = layer.channels();
    std::vector<int32_t> won(static_cast<size_t>(n)), order;
    for (int64_t c = 0; c < channels; ++c) {
        const bool counts = !layer.is_rectified || largest[c] + layer.bias[static_cast<size_t>(c)] > 0;
        if (!counts || winners[c] < 0) continue;
        if (won[static_cast<size_t>(winners[c])]++ == 0) order.push_back(winners[c]);
    }
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        const int32_t of_a = won[static_cast<size_t>(a)], of_b = won[static_cast<size_t>(b)];
        return of_a != of_b ? of_a > of_b : a < b;
    });
    if (order.empty()) order.push_back(0);  // a network that sees nothing
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) ranked[c] = c < order.size() ? order[c] : order[0];
}

}  // namespace

bool is_classifier(const ModelOrEngine& source) {
    return source.name() == "pointnet-classifier";
}

ModelOrEngine split_classifier(ModelOrEngine source, std::shared_ptr<const CriticalLayer>& layer) {
    if (!source.model)
        throw Error(ErrorCode::bad_argument, Place{source.path},
                    "critical points need the classifier's weights: an engine does not tell which points won",
                    "give the .safetensors file that it was built from");
    const Network& network = source.model->network;
    for (const Layer& pool : network.layers) {
        if (pool.kind != network::Kind::max_points || pool.name != "pool") continue;
        const Layer& last = network[pool.inputs[0]];
        layer = std::make_shared<const CriticalLayer>(folded(*source.model, last));
        source.model = beginning_of(*source.model, last.inputs[0]);
        return source;
    }
    STIPPLE_ASSERT(false);
}

Array<int32_t, 2> rank_critical_points(const CriticalLayer& layer, const Array<float, 2>& features,
                                       const ops::Batch& batch, Stream stream) {
    const int64_t clouds = batch.clouds(), channels = layer.channels();
    const Device there = features.device();
    const bool runs_there = there.type == DeviceType::cpu || ops::can_linear_max_cuda(layer.inputs(), channels);
    const Device device = runs_there ? there : Device{};
    const Array<float, 2> copy = runs_there ? Array<float, 2>() : features.to(device);
    const Array<float, 2> weight = layer.weight.to(device);
    Array<float, 2> largest({clouds, channels}, device);
    Array<int32_t, 2> winners({clouds, channels}, device), ranked({clouds, channels});
    ops::linear_max(runs_there ? features.view() : copy.view(), batch, weight.view(), largest.view(), winners.view(),
                    stream);
    const Array<float, 2> largest_here = largest.to(Device{});
    const Array<int32_t, 2> winners_here = winners.to(Device{});
    for (int64_t i = 0; i < clouds; ++i)
        rank(layer, largest_here.data() + i * channels, winners_here.data() + i * channels, batch.size(i),
             ranked.data() + i * channels);
    return ranked.to(there);
}

}  // namespace stipple::tasks
