#include "stipple/tasks/convert_weights.h"

#include <algorithm>
#include <cmath>

#include "stipple/network/card.h"

namespace stipple::tasks {
namespace {

const Fields& tensor_change_fields() {
    using Change = TensorChange;
    static const Fields fields = {
        field<&Change::name>("name", "Name of the tensor"),
        computed_field<Change>("dtype", "Type of its numbers", [](const Change& one) { return name_of(one.dtype); }),
        field<&Change::bytes>("bytes", "Its size in the file").unit("byte"),
        field<&Change::largest_value>("largest_value", "Largest magnitude"),
        field<&Change::largest_error>("largest_error", "Largest difference from what was stored"),
        computed_field<Change>("relative_error", "Largest error over largest value",
                               [](const Change& one) { return one.relative_error(); })};
    return fields;
}

}  // namespace

const Fields& convert_weights_fields() {
    using Options = ConvertWeightsOptions;
    static const Fields fields = {
        field<&Options::storage>("storage", "How the numbers are stored")
            .words(network::kWeightStorageWords)
            .no_default(),
        field<&Options::data>("data", "Into the card: what it was trained on").shown("TEXT").no_default()};
    return fields;
}

const Fields& converted_weights_fields() {
    using Converted = ConvertedWeights;
    static const Fields fields = {
        field<&Converted::storage>("storage", "How the numbers are stored").words(network::kWeightStorageWords),
        computed_field<Converted>("bytes", "Size of the file", [](const Converted& made) { return made.bytes(); }),
        objects_field<&Converted::tensors>("tensors", tensor_change_fields)};
    return fields;
}

void ConvertedWeights::sort_by_error() {
    std::stable_sort(tensors.begin(), tensors.end(), [](const TensorChange& a, const TensorChange& b) {
        return a.relative_error() > b.relative_error();
    });
}

void complete_card(network::Weights& weights, const ConvertWeightsOptions& options) {
    if (options.scores.empty() && options.data.empty()) return;
    network::Card card = network::card_of(weights).value_or(network::Card{});
    if (!options.data.empty()) card.data = options.data;
    for (const auto& [name, value] : options.scores) card.metrics[name] = value;
    network::set_card(weights, card);
}

ConvertedWeights convert_weights(const network::Weights& weights, network::WeightStorage storage) {
    MemorySink sink;
    network::write_weights(weights, storage, sink);
    ConvertedWeights converted{std::move(sink.bytes()), {}, storage};
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
