#include "stipple/io/tfrecord.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "stipple/core/error.h"
#include "stipple/io/common/protobuf_reader.h"
#include "stipple/io/common/record.h"

namespace stipple::io {
namespace {

using FieldType = ProtobufField::Type;

// Lists in several pieces are one list, as the format wants it.
void append_floats(const ProtobufField& list, std::vector<float>& values) {
    ProtobufReader reader(list.bytes, list.offset);
    for (ProtobufField field; reader.next(field);) {
        if (field.is(1, FieldType::four_bytes)) {
            values.push_back(std::bit_cast<float>(static_cast<uint32_t>(field.value)));
        } else if (field.is(1, FieldType::bytes)) {
            if (field.bytes.size() % 4 != 0)
                throw Error(ErrorCode::bad_file, Place{{}, {}, field.offset},
                            fmt::format("{} bytes are no list of floats", field.bytes.size()));
            const size_t before = values.size();
            values.resize(before + field.bytes.size() / 4);
            if (!field.bytes.empty()) std::memcpy(values.data() + before, field.bytes.data(), field.bytes.size());
        }
    }
}

// Whether the feature is a list of floats, the last of its kinds: they are a `oneof`.
bool read_feature(const ProtobufField& feature, std::vector<float>& values) {
    bool is_floats = false;
    ProtobufReader reader(feature.bytes, feature.offset);
    for (ProtobufField field; reader.next(field);) {
        if (field.type != FieldType::bytes || field.number < 1 || field.number > 3) continue;
        is_floats = field.number == 2;
        if (is_floats)
            append_floats(field, values);
        else
            values.clear();
    }
    return is_floats;
}

}  // namespace

std::vector<FloatFeature> parse_example(std::span<const std::byte> message, int64_t offset, int64_t max_features) {
    std::vector<FloatFeature> features;
    const auto add_entry = [&](const ProtobufField& entry) {
        FloatFeature feature;
        bool is_floats = false;
        ProtobufReader reader(entry.bytes, entry.offset);
        for (ProtobufField field; reader.next(field);) {
            if (field.is(1, FieldType::bytes)) feature.name = field.text();
            if (field.is(2, FieldType::bytes)) {
                feature.values.clear();
                is_floats = read_feature(field, feature.values);
            }
        }
        if (!is_floats) return;
        const auto same = std::find_if(features.begin(), features.end(),
                                       [&](const FloatFeature& other) { return other.name == feature.name; });
        if (same != features.end()) {
            same->values = std::move(feature.values);
            return;
        }
        if (static_cast<int64_t>(features.size()) >= max_features)
            throw Error(ErrorCode::bad_file, Place{{}, {}, entry.offset},
                        fmt::format("an example of more than {} lists of floats", max_features));
        features.push_back(std::move(feature));
    };
    ProtobufReader reader(message, offset);
    for (ProtobufField field; reader.next(field);) {
        if (!field.is(1, FieldType::bytes)) continue;
        ProtobufReader entries(field.bytes, field.offset);
        for (ProtobufField entry; entries.next(entry);)
            if (entry.is(1, FieldType::bytes)) add_entry(entry);
    }
    return features;
}

bool read_example(ByteReader& reader, TfExample& example) {
    if (reader.at_end()) return false;
    example.begin = reader.offset();
    std::string_view damage;
    const std::vector<std::byte> message = read_record(reader, damage);
    if (!damage.empty()) throw Error(ErrorCode::bad_file, Place{{}, {}, example.begin}, std::string(damage));
    example.features = parse_example(message, example.begin + kRecordHead, reader.limits().max_features);
    return true;
}

}  // namespace stipple::io
