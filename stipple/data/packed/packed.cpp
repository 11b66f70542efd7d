#include "stipple/data/packed.h"

#include <zlib.h>

#include <algorithm>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/data/packed/block.h"

namespace stipple::data {
namespace {

constexpr int64_t kBlockItems = 256, kBlockPoints = int64_t{1} << 20;

bool same_categories(const DataSet& a, const DataSet& b) {
    return std::equal(a.categories.begin(), a.categories.end(), b.categories.begin(), b.categories.end(),
                      [](const PartCategory& x, const PartCategory& y) {
                          return x.name == y.name && x.begin == y.begin && x.end == y.end;
                      });
}

PackedHeader header_of(std::span<const DataSet> splits, const PackOptions& options) {
    check_fields(pack_fields(), &options);
    STIPPLE_REQUIRE(!splits.empty(), "no splits to pack");
    const DataSet& first = splits[0];
    PackedHeader header;
    header.bits = options.bits;
    header.has_labels = !first.labels.empty();
    header.has_parts = !first.parts.empty();
    header.has_names = true;
    header.classes = first.classes;
    header.part_names = first.part_names;
    if (header.has_parts) header.categories = first.categories;
    STIPPLE_REQUIRE(header.classes.size() <= 65536, "{} classes: at most 65536 are packed", header.classes.size());
    for (const PartCategory& category : header.categories)
        STIPPLE_REQUIRE(category.end - category.begin <= 256, "{} has {} parts: at most 256 are packed", category.name,
                        category.end - category.begin);
    for (const DataSet& set : splits) {
        STIPPLE_REQUIRE(!set.is_pairs(), "pairs of sparse and dense clouds are not packed");
        STIPPLE_REQUIRE(set.size() > 0, "the split {} has no items", set.split);
        STIPPLE_REQUIRE(set.classes == first.classes && same_categories(set, first) &&
                            set.part_names == first.part_names && set.labels.empty() == first.labels.empty() &&
                            set.parts.empty() == first.parts.empty(),
                        "the splits {} and {} are not of one data set", first.split, set.split);
        for (const PackedSplit& other : header.splits)
            STIPPLE_REQUIRE(other.name != set.split, "the split {} is there twice", set.split);
        header.has_names = header.has_names && !set.names.empty();
        header.splits.push_back({set.split, {}});
    }
    return header;
}

/// First items of the blocks, and behind them the number of items.
std::vector<int64_t> block_starts(const DataSet& set) {
    std::vector<int64_t> starts = {0};
    for (int64_t item = 1; item < set.size(); ++item)
        if (item - starts.back() == kBlockItems ||
            set.clouds.offsets[static_cast<size_t>(item + 1)] - set.clouds.offsets[static_cast<size_t>(starts.back())] >
                kBlockPoints)
            starts.push_back(item);
    starts.push_back(set.size());
    return starts;
}

/// Appends the first points of each item.
void append(DataSet& set, const DataSet& block, int64_t points) {
    for (int64_t item = 0; item < block.size(); ++item) {
        const int64_t first = block.clouds.offsets[static_cast<size_t>(item)], all = block.clouds.size_of(item),
                      taken = points > 0 ? std::min(points, all) : all;
        const auto from = block.clouds.points.begin() + 3 * first;
        set.clouds.points.insert(set.clouds.points.end(), from, from + 3 * taken);
        set.clouds.offsets.push_back(set.clouds.offsets.back() + taken);
        if (!block.parts.empty())
            set.parts.insert(set.parts.end(), block.parts.begin() + first, block.parts.begin() + first + taken);
    }
    set.labels.insert(set.labels.end(), block.labels.begin(), block.labels.end());
    set.names.insert(set.names.end(), block.names.begin(), block.names.end());
}

std::span<const uint8_t> bytes_of(const Buffer& buffer, int64_t begin, int64_t count) {
    return {reinterpret_cast<const uint8_t*>(buffer.data()) + begin, static_cast<size_t>(count)};
}

}  // namespace

const Fields& pack_fields() {
    static const Fields fields = {
        field<&PackOptions::points>("points", "The first N of each cloud; 0: all").from(0),
        field<&PackOptions::bits>("bits", "Of a coordinate, 8 to 16, over the box of its cloud").between(8, 16)};
    return fields;
}

const Fields& packed_facts_fields() {
    using Facts = PackedFacts;
    static const Fields fields = {
        field<&Facts::splits>("splits", "Names of the splits"),
        field<&Facts::items>("items", "Clouds"),
        field<&Facts::points>("points", "Points of all clouds"),
        field<&Facts::bits>("bits", "Bits of a coordinate"),
        field<&Facts::bytes>("bytes", "Size of the file").unit("byte"),
        field<&Facts::largest_error>("largest_error", "Half the largest step of all clouds").unit("unit of the set")};
    return fields;
}

PackedFacts write_packed(std::span<const DataSet> splits, const PackOptions& options, ByteSink& sink) {
    PackedHeader header = header_of(splits, options);
    PackedFacts facts{.bits = options.bits};
    for (const DataSet& set : splits) facts.splits.push_back(set.split);
    std::vector<PackedBytes> blocks;
    for (size_t s = 0; s < splits.size(); ++s) {
        const std::vector<int64_t> starts = block_starts(splits[s]);
        const size_t before = blocks.size();
        blocks.resize(before + starts.size() - 1);
        parallel_for(static_cast<int64_t>(starts.size()) - 1, 1, [&](int64_t begin, int64_t end) {
            for (int64_t b = begin; b < end; ++b) {
                check_interrupted();
                const auto at = static_cast<size_t>(b);
                blocks[before + at] = encode_block(header, splits[s], starts[at], starts[at + 1], options.points);
            }
        });
        for (size_t b = before; b < blocks.size(); ++b) header.splits[s].blocks.push_back(blocks[b].facts);
    }
    const std::string text = packed_header_json(header);
    const uint64_t length = text.size();
    const auto crc = static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
    sink.write(kPackedMagic);
    sink.write(&length, 8);
    sink.write(&crc, 4);
    sink.write(text);
    facts.bytes = 20 + static_cast<int64_t>(text.size());
    for (const PackedBytes& block : blocks) {
        sink.write(block.deflated.data(), block.facts.deflated);
        sink.write(block.coded.data(), block.facts.coded);
        facts.bytes += block.facts.deflated + block.facts.coded;
        facts.items += block.facts.items;
        facts.points += block.facts.points;
        facts.largest_error = std::max(facts.largest_error, block.largest_error);
    }
    return facts;
}

PackedFacts save_packed(const std::string& path, std::span<const DataSet> splits, const PackOptions& options,
                        Overwrite overwrite) {
    AtomicFile file(path, overwrite);
    const PackedFacts facts = write_packed(splits, options, file);
    file.commit();
    return facts;
}

PackedContent load_packed_content(const std::string& path) {
    io::FileSource source(path);
    io::ByteReader reader(source);
    try {
        const PackedHeader header = read_packed_header(reader);
        PackedContent content{header.bits, {}};
        for (const PackedSplit& split : header.splits) content.splits.push_back(split.name);
        return content;
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

bool is_packed_file(const std::string& path) {
    try {
        io::FileSource source(path);
        std::byte first[8];
        const int64_t count = source.read(first, 8);
        return count == 8 && std::string_view(reinterpret_cast<const char*>(first), 8) == kPackedMagic;
    } catch (const Error&) {
        return false;
    }
}

DataSet parse_packed(io::ByteReader& reader, const std::string& split, int64_t points) {
    STIPPLE_REQUIRE(points >= 0, "{} points of each cloud", points);
    const PackedHeader header = read_packed_header(reader);
    const auto found = std::find_if(header.splits.begin(), header.splits.end(),
                                    [&](const PackedSplit& candidate) { return candidate.name == split; });
    STIPPLE_REQUIRE(found != header.splits.end(), "no split {}", split);
    for (auto before = header.splits.begin(); before != found; ++before)
        for (const PackedBlock& block : before->blocks) reader.skip(block.deflated + block.coded, "a block");
    std::vector<Buffer> stored;
    for (const PackedBlock& block : found->blocks) {
        stored.push_back(reader.read_buffer(block.deflated + block.coded, "a block"));
        if (checksum_of(bytes_of(stored.back(), 0, block.deflated),
                        bytes_of(stored.back(), block.deflated, block.coded)) != block.crc32)
            reader.fail(fmt::format("block {} of the split {} is damaged: its checksum differs", stored.size() - 1,
                                    in_quotes(split)));
    }
    std::vector<DataSet> decoded(stored.size());
    parallel_for(static_cast<int64_t>(stored.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
            check_interrupted();
            const auto at = static_cast<size_t>(b);
            const PackedBlock& block = found->blocks[at];
            try {
                decoded[at] = decode_block(header, block, bytes_of(stored[at], 0, block.deflated),
                                           bytes_of(stored[at], block.deflated, block.coded));
            } catch (const Error& error) {
                throw Error(error.code(),
                            fmt::format("block {} of the split {}: {}", b, in_quotes(split), error.message()));
            }
        }
    });
    stored.clear();
    DataSet set;
    set.split = split;
    set.classes = header.classes;
    set.categories = header.categories;
    set.part_names = header.part_names;
    for (DataSet& block : decoded) {
        append(set, block, points);
        block = {};
    }
    return set;
}

}  // namespace stipple::data
