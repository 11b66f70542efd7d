#pragma once
// TFRecord files of tf.Example messages, as data sets of TensorFlow have them: record after record, each with lists of
// numbers by name. Lists of floats are read, others are passed over.
//
//   FileSource source(path);
//   ByteReader reader(source);
//   for (TfExample example; read_example(reader, example);) use(example.features);
//
// A file is records (io/common/record.h) whose bytes are a message Example of Protocol Buffers [tensorflow,
// example.proto and feature.proto]: Example.features = 1, Features.feature = 1, a map of name = 1 and Feature = 2,
// Feature.float_list = 2, FloatList.value = 1, packed or one by one.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stipple/io/byte_source.h"

namespace stipple::io {

struct FloatFeature {
    std::string name = {};
    std::vector<float> values = {};  // any numbers, NaN too
};

struct TfExample {
    std::vector<FloatFeature> features;  // in the order of the file; of two with one name the last one's values
    int64_t begin = 0;                   // of its record in the file
};

/// The lists of floats of a message that begins at `offset` of its file. Throws Error{bad_file} with the offset for
/// bytes that break the format, packed floats of another length than 4 bytes each, and more than `max_features` lists.
std::vector<FloatFeature> parse_example(std::span<const std::byte> message, int64_t offset, int64_t max_features);

/// The next example; false at the end of the input. A file that holds nothing has none. Throws Error{bad_file} with the
/// offset for a record that is cut short, a wrong checksum, a record above limits().max_record, and as parse_example.
/// Memory grows with what has arrived.
bool read_example(ByteReader& reader, TfExample& example);

}  // namespace stipple::io
