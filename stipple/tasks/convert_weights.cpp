#include "stipple/tasks/convert_weights.h"

#include <algorithm>
#include <cmath>

namespace stipple::tasks {

ConvertedWeights convert_weights(const network::Weights& weights, network::WeightStorage storage) {
    MemorySink sink;
    network::write_weights(weights, storage, sink);
    ConvertedWeights converted{std::move(sink.bytes()), {}};
    io::MemorySource header_source(converted.file), source(converted.file);
    io::ByteReader header_reader(header_source), reader(source);
    std::map<std::string, io::TensorHeader::Entry> stored;
    for (io::TensorHeader::Entry& entry : io::read_safetensors_header(header_reader).tensors)
        stored.emplace(entry.name, std::move(entry));
    const network::Weights back = network::parse_weights(reader);
    for (const auto& [name, tensor] : weights.tensors) {
        const io::TensorHeader::Entry& entry = stored.at(name);
        TensorChange change{name, entry.dtype, entry.end - entry.begin};
        if (entry.dtype == DType::i8) {
            const io::TensorHeader::Entry& scales = stored.at(name + ".scale");
            change.bytes += scales.end - scales.begin;
        }
        const std::vector<float>& read = back.tensors.at(name).values;
        for (size_t i = 0; i < read.size(); ++i) {
            change.largest_value = std::max(change.largest_value, std::fabs(double{tensor.values[i]}));
            change.largest_error = std::max(change.largest_error, std::fabs(double{read[i]} - tensor.values[i]));
        }
        converted.tensors.push_back(std::move(change));
    }
    return converted;
}

}  // namespace stipple::tasks
