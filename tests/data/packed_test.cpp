#include "stipple/data/packed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "stipple/core/rng.h"
#include "stipple/data/packed/block.h"
#include "stipple/data/packed/range_coder.h"
#include "tests/data/data_set_files.h"
#include "tests/support/data_sets.h"

namespace stipple::data {
namespace {

/// Clouds of different sizes in boxes of different extents, with everything that is packed.
DataSet packable(const std::string& split, int64_t items, uint64_t seed) {
    DataSet set;
    set.split = split;
    set.classes = {"cup", "lamp", "t\u00fcr"};
    set.categories = {{"cup", 0, 2}, {"lamp", 2, 5}, {"t\u00fcr", 5, 6}};
    set.part_names = {"body", "handle", "base", "bulb", "canopy", "leaf"};
    for (int64_t item = 0; item < items; ++item) {
        const Rng rng(seed, static_cast<uint64_t>(item));
        const int64_t n = 1 + rng.below(0, 60);
        const auto label = static_cast<int32_t>(item % 3);
        const PartCategory& category = set.categories[static_cast<size_t>(label)];
        for (int64_t i = 0; i < n; ++i) {
            for (int axis = 0; axis < 3; ++axis)
                set.clouds.points.push_back(static_cast<float>(item + axis) +
                                            (axis == 2 && item % 4 == 0
                                                 ? 0.0f  // flat
                                                 : rng.uniform(static_cast<uint64_t>(8 + 3 * i + axis)) * 0.7f));
            set.parts.push_back(static_cast<int32_t>(category.begin) +
                                static_cast<int32_t>(rng.below(static_cast<uint64_t>(1000 + i),
                                                               static_cast<uint32_t>(category.end - category.begin))));
        }
        set.clouds.offsets.push_back(set.clouds.offsets.back() + n);
        set.labels.push_back(label);
        set.names.push_back(fmt::format("{}/{}", split, item));
    }
    return set;
}

std::string bytes_of_packed(std::span<const DataSet> splits, const PackOptions& options = {}) {
    MemorySink sink;
    const PackedFacts facts = write_packed(splits, options, sink);
    EXPECT_EQ(facts.bytes, static_cast<int64_t>(sink.bytes().size()));
    return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

DataSet unpacked(std::string_view bytes, const std::string& split, int64_t points = 0) {
    io::MemorySource source({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
    io::ByteReader reader(source);
    return parse_packed(reader, split, points);
}

std::string packed_error(std::string_view bytes, const std::string& split = "train") {
    try {
        unpacked(bytes, split);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file) << error.what();
        EXPECT_EQ(std::strchr(error.what(), '\n'), nullptr);
        return error.what();
    }
    return "ok";
}

/// The same content with another header, its length and checksum right.
std::string with_header(const std::string& bytes, const std::function<void(std::string&)>& change) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + 8, 8);
    std::string header = bytes.substr(20, length);
    change(header);
    const uint64_t changed = header.size();
    uint32_t crc = 0xFFFFFFFFu;  // the definition of CRC-32, bit by bit
    for (const char c : header) {
        crc ^= static_cast<uint8_t>(c);
        for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    crc = ~crc;
    std::string result = bytes.substr(0, 8);
    result.append(reinterpret_cast<const char*>(&changed), 8);
    result.append(reinterpret_cast<const char*>(&crc), 4);
    return result + header + bytes.substr(20 + length);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << text;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

void expect_same(const DataSet& set, const DataSet& again, int bits) {
    EXPECT_EQ(again.split, set.split);
    EXPECT_EQ(again.classes, set.classes);
    EXPECT_EQ(again.part_names, set.part_names);
    ASSERT_EQ(again.categories.size(), set.categories.size());
    for (size_t c = 0; c < set.categories.size(); ++c) EXPECT_EQ(again.categories[c].end, set.categories[c].end);
    EXPECT_EQ(again.labels, set.labels);
    EXPECT_EQ(again.parts, set.parts);
    EXPECT_EQ(again.names, set.names);
    ASSERT_EQ(again.clouds.offsets, set.clouds.offsets);
    for (int64_t item = 0; item < set.size(); ++item) {
        const View<const float, 2> points = set.points_of(item), others = again.points_of(item);
        for (int axis = 0; axis < 3; ++axis) {
            float low = points(0, axis), high = low;
            for (int64_t i = 0; i < points.size(0); ++i) {
                low = std::min(low, points(i, axis));
                high = std::max(high, points(i, axis));
            }
            const double half_step = (high - low) / ((1 << bits) - 1) / 2 * (1 + 1e-4);
            for (int64_t i = 0; i < points.size(0); ++i) {
                EXPECT_NEAR(others(i, axis), points(i, axis), half_step + std::abs(high) * 6e-8);
                EXPECT_TRUE(others(i, axis) >= low && others(i, axis) <= high);
                // The ends of the box are exact.
                if (points(i, axis) == low || points(i, axis) == high) {
                    EXPECT_EQ(others(i, axis), points(i, axis));
                }
            }
        }
    }
}

TEST(PackedRangeCoder, NumbersComeBackAtEveryWidth) {
    for (const int bits : {8, 10, 12, 13, 16}) {
        const Rng rng(static_cast<uint64_t>(bits));
        std::vector<uint32_t> numbers;
        for (uint64_t i = 0; i < 20'000; ++i)  // many of one value, so that counts are halved, and runs of the highest
            numbers.push_back(i % 3 ? (1u << bits) - 1 : rng.bits(i) >> (32 - bits));
        RangeEncoder encoder;
        NumberModel writing(bits), reading(bits);
        for (const uint32_t number : numbers) writing.encode(encoder, number);
        const std::vector<uint8_t> bytes = encoder.finish();
        RangeDecoder decoder(bytes);
        for (const uint32_t number : numbers) ASSERT_EQ(reading.decode(decoder), number);
        EXPECT_TRUE(decoder.is_at_end());
        EXPECT_LT(bytes.size(), 20'000u * static_cast<unsigned>(bits) / 8 * 6 / 10);  // two of three say nothing
    }
}

TEST(PackedRangeCoder, NothingIsFree) {
    RangeEncoder encoder;
    NumberModel model(8);
    for (int i = 0; i < 300'000; ++i) model.encode(encoder, 0);
    EXPECT_GT(encoder.finish().size() * 20, 100'000u) << "the reader allows 20 points of three numbers a byte";
}

TEST(Packed, RoundTripOfEverything) {
    const DataSet splits[] = {packable("train", 600, 1), packable("test", 7, 2)};
    for (const int bits : {8, 10, 16}) {
        const std::string bytes = bytes_of_packed(splits, {.bits = bits});
        expect_same(splits[0], unpacked(bytes, "train"), bits);
        expect_same(splits[1], unpacked(bytes, "test"), bits);
    }
    MemorySink sink;
    const PackedFacts facts = write_packed(splits, {}, sink);
    EXPECT_EQ(facts.items, 607);
    EXPECT_NEAR(facts.largest_error, 0.7 / 1023 / 2, 0.02 / 1023);
}

TEST(Packed, WithoutLabelsPartsAndNames) {
    DataSet bare = packable("all", 3, 5);
    bare.labels.clear();
    bare.parts.clear();
    bare.names.clear();
    bare.classes.clear();
    bare.categories.clear();
    bare.part_names.clear();
    expect_same(bare, unpacked(bytes_of_packed({&bare, 1}), "all"), 10);
}

TEST(Packed, FirstPoints) {
    const DataSet set = packable("train", 20, 3);
    const std::string few = bytes_of_packed({&set, 1}, {.points = 5}), all = bytes_of_packed({&set, 1});
    const DataSet written = unpacked(few, "train"), read = unpacked(all, "train", 5);
    EXPECT_EQ(written.clouds.offsets, read.clouds.offsets);
    EXPECT_EQ(written.parts, read.parts);
    for (int64_t item = 0; item < 20; ++item) {
        const int64_t n = std::min<int64_t>(5, set.clouds.size_of(item));
        ASSERT_EQ(read.clouds.size_of(item), n);
        for (int64_t i = 0; i < n; ++i) {
            EXPECT_EQ(read.parts[static_cast<size_t>(read.clouds.offsets[static_cast<size_t>(item)] + i)],
                      set.parts[static_cast<size_t>(set.clouds.offsets[static_cast<size_t>(item)] + i)]);
            EXPECT_NEAR(read.points_of(item)(i, 0), set.points_of(item)(i, 0), 4e-4);
            EXPECT_NEAR(written.points_of(item)(i, 0), set.points_of(item)(i, 0), 4e-4);
        }
    }
}

TEST(Packed, CutAnywhereItIsRefused) {
    const DataSet set = packable("train", 4, 3);
    const std::string bytes = bytes_of_packed({&set, 1});
    for (size_t length = 0; length < bytes.size(); ++length)
        EXPECT_NE(packed_error(bytes.substr(0, length)), "ok") << length << " of " << bytes.size();
    EXPECT_NE(packed_error(bytes + "x").find("1 bytes follow the last block"), std::string::npos);
}

TEST(Packed, FlippedAnywhereItIsRefused) {
    const DataSet set = packable("train", 4, 3);
    const std::string bytes = bytes_of_packed({&set, 1});
    for (size_t i = 0; i < bytes.size(); ++i) {
        std::string flipped = bytes;
        flipped[i] = static_cast<char>(flipped[i] ^ 1 << i % 8);
        EXPECT_NE(packed_error(flipped), "ok") << "byte " << i;
    }
    std::string damaged = bytes;
    damaged.back() = static_cast<char>(damaged.back() ^ 4);
    EXPECT_NE(packed_error(damaged).find("block 0 of the split \"train\" is damaged"), std::string::npos);
}

TEST(Packed, HeadersThatLie) {
    const DataSet set = packable("train", 4, 3);
    const std::string bytes = bytes_of_packed({&set, 1});
    const std::string points = fmt::format("\"points\":{}", set.clouds.offsets.back());
    for (const auto& [from, to, message] :
         std::vector<std::array<std::string, 3>>{{"\"bits\":10", "\"bits\":17", "17 bits"},
                                                 {"\"bits\":10", "\"bits\":\"x\"", "\"bits\" must be"},
                                                 {"\"format\":1", "\"format\":2", "format 2, this program reads 1"},
                                                 {"\"items\":4", "\"items\":400000000", "a block of 400000000 clouds"},
                                                 {"\"items\":4", "\"items\":5", "block 0"},
                                                 {points, "\"points\":2000000000", "cannot hold a block"},
                                                 {points, "\"points\":99", "sizes of clouds do not add up"},
                                                 {"\"inflated\":", "\"inflated\":1000000", "cannot hold a block"},
                                                 {"\"coded\":", "\"coded\":1", "blocks"},
                                                 {"\"coded\":", "\"coded\":-1", "a block of 4 clouds"},
                                                 {"\"cup\",\"lamp\"", "\"cup\"", "parts of 3 categories for 2 classes"},
                                                 {"\"end\":5", "\"end\":4", "part 2 of \"lamp\", which has 2"},
                                                 {"\"end\":5", "\"end\":-5", "has parts 2 to -5"},
                                                 {"\"labels\":true", "\"labels\":false", "parts of"},
                                                 {"\"name\":\"train\"", "\"name\":\"\"", "no name"},
                                                 {"\"parts\":true", "\"parts\":false", "too long"},
                                                 {"\"crc32\":", "\"crc\":", "is not known"}}) {
        const std::string error = packed_error(with_header(
            bytes, [&, &from = from, &to = to](std::string& header) { header = replaced(header, from, to); }));
        EXPECT_NE(error.find(message), std::string::npos) << from << " -> " << to << ": " << error;
    }
    EXPECT_EQ(packed_error(with_header(bytes, [](std::string&) {})), "ok") << "or these tests show nothing";
}

TEST(Packed, BlocksOfAnyBytesAreSafe) {
    PackedHeader header;
    header.bits = 10;
    const DataSet set = packable("train", 3, 3);
    const PackedBytes block = encode_block(header, set, 0, 3, 0);
    EXPECT_EQ(decode_block(header, block.facts, block.deflated, block.coded).size(), 3);
    std::vector<uint8_t> random(block.coded.size());
    for (size_t i = 0; i < random.size(); ++i) random[i] = static_cast<uint8_t>(Rng(9).bits(i));
    EXPECT_THROW(decode_block(header, block.facts, block.deflated, std::span(block.coded).first(2)), Error);
    EXPECT_THROW(decode_block(header, block.facts, random, block.coded), Error);
    try {  // other numbers, or not all of the bytes are used
        decode_block(header, block.facts, block.deflated, random);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file);
    }
}

TEST(Packed, RefusesWhatItCannotHold) {
    const DataSet set = packable("train", 3, 3);
    MemorySink sink;
    const auto refuses = [&](const DataSet& first, const DataSet& second, const PackOptions& options = {}) {
        const DataSet splits[] = {first, second};
        EXPECT_THROW(write_packed(splits, options, sink), Error);
    };
    const DataSet test = packable("test", 3, 3);
    refuses(set, set);
    refuses(set, test, {.bits = 7});
    refuses(set, test, {.bits = 17});
    refuses(set, test, {.points = -1});
    DataSet other = test;
    other.classes[0] = "mug";
    refuses(set, other);
    other = test;
    other.parts.clear();
    refuses(set, other);
    other = test;
    other.targets = other.clouds;
    refuses(set, other);
    EXPECT_THROW(write_packed({}, {}, sink), Error);
    EXPECT_TRUE(sink.bytes().empty());
}

TEST(Packed, FilesOfTheCorpusGiveTheirMessage) {
    const std::string corpus = STIPPLE_SOURCE_DIR "/tests/corpus/";
    const std::string expected = test::read_file(corpus + "packed.tsv");
    int64_t files = 0;
    for (size_t begin = 0; begin < expected.size(); ++files) {
        const size_t tab = expected.find('\t', begin), end = expected.find('\n', begin);
        const std::string name = expected.substr(begin, tab - begin), message = expected.substr(tab + 1, end - tab - 1);
        begin = end + 1;
        const std::string found = packed_error(test::read_file(corpus + name));
        EXPECT_NE(found.find(message), std::string::npos) << name << ": " << found;
    }
    EXPECT_GE(files, 20);
    // Written by a program of its own, tests/corpus/generate.py.
    const DataSet set = unpacked(test::read_file(corpus + "packed/good.stpk"), "train");
    EXPECT_EQ(set.labels, (std::vector<int32_t>{1, 0}));
    EXPECT_EQ(set.parts, (std::vector<int32_t>{2, 4, 3, 1}));
    EXPECT_EQ(set.names, (std::vector<std::string>{"a", "bc"}));
    ASSERT_EQ(set.clouds.size_of(0), 3);
    EXPECT_FLOAT_EQ(set.points_of(0)(1, 0), 1);
    EXPECT_FLOAT_EQ(set.points_of(0)(2, 0), -1 + 2 * 5 / 1023.0f);
    EXPECT_FLOAT_EQ(set.points_of(0)(0, 2), 0.5);
    EXPECT_FLOAT_EQ(set.points_of(1)(0, 1), 2);
}

class PackedLayout : public DataSetTest {};

TEST_F(PackedLayout, IsRecognisedAndRead) {
    const DataSet splits[] = {packable("train", 5, 1), packable("test", 4, 2)};
    const std::string path = folder / "small.stpk";
    save_packed(path, splits, {}, Overwrite::refuse);
    EXPECT_THROW(save_packed(path, splits, {}, Overwrite::refuse), Error);
    const RecognisedSet found = recognise_data_set(path);
    EXPECT_EQ(found.layout, "packed");
    EXPECT_EQ(found.splits, (std::vector<std::string>{"train", "test"}));
    const DataSet test = load_data_set(path, {.split = "test"}, warnings);
    EXPECT_EQ(test.layout, "packed");
    expect_same(splits[1], test, 10);
    EXPECT_EQ(load_data_set(path, {}, warnings).split, "train");
    EXPECT_THROW(load_data_set(path, {.split = "val"}, warnings), Error);
    EXPECT_TRUE(warnings.empty());

    std::string bytes = test::read_file(path);
    bytes.resize(bytes.size() - 3);
    test::write_file(path, bytes);
    try {
        load_data_set(path, {}, warnings);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file);
        expect_in(error.what(), "small.stpk");
        expect_in(error.what(), "blocks");
    }
}

#ifdef STIPPLE_WITH_HDF5
TEST_F(PackedLayout, ModelNetTakesLessThan3700BytesACloud) {
    STIPPLE_NEEDS_DATA("modelnet40_hdf5_2048");
    const DataSet test =
        load_data_set(*test::data_file("modelnet40_hdf5_2048"), {.split = "test", .points = 1024}, warnings);
    MemorySink sink;
    const PackedFacts facts = write_packed({&test, 1}, {}, sink);
    EXPECT_LT(facts.bytes, 3700 * test.size());  // 12,170 clouds: 45 MB
    EXPECT_LE(facts.largest_error, 2.0 / 1023 / 2);
}
#endif

}  // namespace
}  // namespace stipple::data
