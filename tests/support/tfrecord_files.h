#pragma once
// TFRecord files that tests write themselves: records of lists of floats by name.

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/io/common/protobuf_writer.h"
#include "stipple/io/common/record.h"

namespace stipple::test {

inline std::string bytes_text(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A record around any message, with right checksums.
inline std::string tfrecord(std::string_view message) {
    return bytes_text(io::record_of(std::as_bytes(std::span(message.data(), message.size()))));
}

/// A message tf.Example of packed lists.
inline std::string example_message(const std::map<std::string, std::vector<float>>& lists) {
    io::ProtobufWriter features;
    for (const auto& [name, values] : lists) {
        io::ProtobufWriter list, feature, entry;
        list.bytes(1, std::as_bytes(std::span(values)));
        feature.message(2, list);
        entry.text(1, name);
        entry.message(2, feature);
        features.message(1, entry);
    }
    io::ProtobufWriter example;
    example.message(1, features);
    return bytes_text(example.data());
}

}  // namespace stipple::test
