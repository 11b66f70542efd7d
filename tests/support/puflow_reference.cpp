#include "tests/support/puflow_reference.h"

#include <fmt/format.h>

#include <algorithm>

#include "stipple/core/error.h"
#include "stipple/io/byte_source.h"
#include "stipple/io/npy.h"
#include "tests/support/data_sets.h"

namespace stipple::test {

network::Weights puflow_weights(const network::Weights& checkpoint) {
    network::Weights renamed;
    const auto rename_prefix = [](std::string name, const std::string& from, const std::string& to) {
        if (name.starts_with(from)) name.replace(0, from.size(), to);
        return name;
    };
    for (const auto& [name, tensor] : checkpoint.tensors) {
        if (name.find(".permutate2.") != std::string::npos || name.ends_with(".num_batches_tracked")) continue;
        std::string to = name;
        const size_t last_dot = name.rfind('.');
        const std::string layer = name.substr(0, last_dot);
        if (checkpoint.tensors.contains(layer + ".running_mean")) {
            const size_t dot = layer.rfind('.');  // "convs.0.1" holds the batch norm of "convs.0.0"
            const int position = std::stoi(layer.substr(dot + 1));
            to = rename_prefix(name, layer, fmt::format("{}.{}.norm", layer.substr(0, dot), position - 1));
        }
        if (name.ends_with(".permutater.W")) to.replace(to.size() - 1, 1, "weight");
        network::WeightTensor& copy = renamed.tensors[to] = tensor;
        while (copy.shape.size() > 2 && copy.shape.back() == 1) copy.shape.pop_back();
        while (copy.shape.size() > 1 && copy.shape.front() == 1 && name.find(".actnorm.") != std::string::npos)
            copy.shape.erase(copy.shape.begin());
    }
    return renamed;
}

network::Weights load_puflow_weights() {
    return puflow_weights(network::load_weights(data_file(kPuFlowReference).value() + "/puflow_x4_pugan.safetensors"));
}

PuFlowArray load_puflow_array(const std::string& name) {
    io::FileSource source(data_file(kPuFlowReference).value() + "/" + name + ".npy");
    io::ByteReader reader(source);
    const io::NpyArray array = io::parse_npy_array(reader);
    PuFlowArray result{array.shape, std::vector<double>(static_cast<size_t>(array.elements()))};
    const auto read = [&](auto* values) { std::copy_n(values, array.elements(), result.values.begin()); };
    switch (array.dtype) {
        case DType::f32: read(reinterpret_cast<const float*>(array.data.data())); break;
        case DType::f64: read(reinterpret_cast<const double*>(array.data.data())); break;
        case DType::i64: read(reinterpret_cast<const int64_t*>(array.data.data())); break;
        default: throw Error(ErrorCode::internal, fmt::format("{} is of another type", name));
    }
    return result;
}

}  // namespace stipple::test
