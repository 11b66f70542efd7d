// TFRecord files: what they hold, and every way in which they can be broken.

#include "stipple/io/tfrecord.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "tests/support/expect_error.h"
#include "tests/support/tfrecord_files.h"

namespace stipple::test {
namespace {

std::vector<io::TfExample> examples_of(std::string_view text, const io::Limits& limits = {}) {
    io::MemorySource source(std::as_bytes(std::span(text.data(), text.size())));
    io::ByteReader reader(source, limits);
    std::vector<io::TfExample> examples;
    for (io::TfExample example; io::read_example(reader, example);) examples.push_back(example);
    return examples;
}

TEST(IoTfRecord, ListsOfFloatsComeByName) {
    EXPECT_TRUE(examples_of("").empty());
    const std::string first = tfrecord(example_message({{"a", {1, -2.5f}}, {"b", {}}}));
    const std::vector<io::TfExample> found = examples_of(first + tfrecord(example_message({{"c", {3}}})));
    ASSERT_EQ(found.size(), 2u);
    ASSERT_EQ(found[0].features.size(), 2u);
    EXPECT_EQ(found[0].features[0].name, "a");
    EXPECT_EQ(found[0].features[0].values, (std::vector<float>{1, -2.5f}));
    EXPECT_TRUE(found[0].features[1].values.empty());
    EXPECT_EQ(found[0].begin, 0);
    EXPECT_EQ(found[1].begin, static_cast<int64_t>(first.size()));
    EXPECT_EQ(found[1].features[0].values, (std::vector<float>{3}));
    EXPECT_TRUE(examples_of(tfrecord("")).at(0).features.empty());
}

TEST(IoTfRecord, OtherWritersAreUnderstood) {
    const auto message = [](std::string_view feature) {
        io::ProtobufWriter entry, features, example;
        entry.text(1, "x");
        entry.text(2, feature);
        features.message(1, entry);
        example.message(1, features);
        return tfrecord(bytes_text(example.data()));
    };
    io::ProtobufWriter one_by_one, feature;
    one_by_one.real(1, 0.5f);
    one_by_one.real(1, 4.0f);
    feature.message(2, one_by_one);
    EXPECT_EQ(examples_of(message(bytes_text(feature.data()))).at(0).features.at(0).values,
              (std::vector<float>{0.5f, 4}));
    io::ProtobufWriter integers, of_integers;
    const int64_t numbers[] = {1, 2};
    integers.packed(1, numbers);
    of_integers.message(3, integers);
    EXPECT_TRUE(examples_of(message(bytes_text(of_integers.data()))).at(0).features.empty());
    // Of two kinds the last counts, and of two entries of one name.
    EXPECT_TRUE(
        examples_of(message(bytes_text(feature.data()) + bytes_text(of_integers.data()))).at(0).features.empty());
    const std::string twice = example_message({{"x", {1, 2}}}) + example_message({{"x", {7}}});
    const io::TfExample last = examples_of(tfrecord(twice)).at(0);
    ASSERT_EQ(last.features.size(), 1u);
    EXPECT_EQ(last.features[0].values, (std::vector<float>{7}));
}

TEST(IoTfRecord, CutAnywhereItIsRefused) {
    const std::string first = tfrecord(example_message({{"a", {1, 2, 3}}})), whole = first + first;
    for (size_t size = 1; size < whole.size(); ++size) {
        if (size == first.size()) continue;
        const std::string place = size < first.size() ? "byte 0: " : fmt::format("byte {}: ", first.size());
        EXPECT_ERROR(examples_of(whole.substr(0, size)), bad_file, place + "the file ends within a record");
    }
}

TEST(IoTfRecord, NoFlippedBitIsReadOver) {
    const std::string good = tfrecord(example_message({{"a", {1, 2, 3}}}));
    for (size_t byte = 0; byte < good.size(); ++byte)
        for (int bit = 0; bit < 8; ++bit) {
            std::string bad = good;
            bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
            EXPECT_ERROR(
                examples_of(bad), bad_file,
                byte < 12 ? "the checksum of a record's length is wrong" : "the checksum of a record is wrong");
        }
}

TEST(IoTfRecord, HostileLengthsAreRefused) {
    io::Limits small;
    small.max_record = 40;
    const std::string fits = tfrecord(example_message({{"a", {1}}}));
    EXPECT_EQ(examples_of(fits, small).size(), 1u);
    EXPECT_ERROR(examples_of(fits + tfrecord(std::string(41, 'x')), small), bad_file,
                 fmt::format("byte {}: a record of 41 bytes, more than 40 are not read", fits.size()));
    const uint64_t huge = uint64_t{1} << 63;
    std::string head(reinterpret_cast<const char*>(&huge), 8);
    const uint32_t crc = io::masked_crc(std::as_bytes(std::span(head.data(), head.size())));
    head.append(reinterpret_cast<const char*>(&crc), 4);
    EXPECT_ERROR(examples_of(head), bad_file, "a record of 9223372036854775808 bytes");
    EXPECT_ERROR(examples_of(tfrecord("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), bad_file,
                 "a number of more than 64 bits");
    EXPECT_ERROR(examples_of(tfrecord("\x0a\x05\x0a\x7f")), bad_file, "byte 14: protocol buffers: a field is longer");
    EXPECT_ERROR(examples_of(tfrecord("\x0a\x02\x0a\x05")), bad_file, "a field is longer than its message");
    EXPECT_ERROR(examples_of(tfrecord("\x0b")), bad_file, "a field of an unknown type");
    // Floats of five bytes.
    EXPECT_ERROR(examples_of(tfrecord("\x0a\x0d\x0a\x0b\x12\x09\x12\x07\x0a\x05zzzzz")), bad_file,
                 "5 bytes are no list of floats");
    std::map<std::string, std::vector<float>> many;
    for (int i = 0; i < 300; ++i) many[std::to_string(i)] = {};
    EXPECT_ERROR(examples_of(tfrecord(example_message(many))), bad_file, "more than 256 lists of floats");
}

}  // namespace
}  // namespace stipple::test
