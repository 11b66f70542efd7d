#include "stipple/data/packed/header.h"

#include <zlib.h>

#include <set>

#include "stipple/core/checked.h"
#include "stipple/core/json_reader.h"
#include "stipple/core/json_writer.h"

namespace stipple::data {
namespace {

constexpr int64_t kMaxParts = 1 << 20;
constexpr int64_t kPointsPerByte = 20;  // a point is 24 decisions or more, each at least a fiftieth of a bit

void take_name(JsonField& field, std::vector<std::string>& names) {
    if (field.word() != std::to_string(names.size())) field.fail("must be a list of names");
    field.take(names.emplace_back());
}

void take_category(JsonField& field, PartCategory& category) {
    const std::string_view key = field.word();
    if (key == "name")
        field.take(category.name);
    else if (key == "begin")
        field.take(category.begin);
    else if (key == "end")
        field.take(category.end);
    else
        field.fail("is not known");
}

void take_block(JsonField& field, PackedBlock& block) {
    constexpr std::pair<std::string_view, int64_t PackedBlock::*> kMembers[] = {
        {"items", &PackedBlock::items},       {"points", &PackedBlock::points}, {"inflated", &PackedBlock::inflated},
        {"deflated", &PackedBlock::deflated}, {"coded", &PackedBlock::coded},   {"crc32", &PackedBlock::crc32}};
    const std::string_view key = field.word();
    for (const auto& [name, member] : kMembers)
        if (key == name) return field.take(block.*member);
    field.fail("is not known");
}

void take_field(JsonField& field, PackedHeader& header, int64_t& format) {
    const std::string_view key = field.word();
    if (key == "format") {
        field.take(format);
    } else if (key == "bits") {
        field.take(header.bits);
    } else if (key == "labels") {
        field.take(header.has_labels);
    } else if (key == "names") {
        field.take(header.has_names);
    } else if (key == "parts") {
        field.take(header.has_parts);
    } else if (key == "classes") {
        take_name(field, header.classes);
    } else if (key == "part_names") {
        take_name(field, header.part_names);
    } else if (key == "categories") {
        take_category(field, field.element(header.categories));
    } else if (key == "splits") {
        PackedSplit& split = field.element(header.splits);
        const std::string_view member = field.word();
        if (member == "name")
            field.take(split.name);
        else if (member == "blocks")
            take_block(field, field.element(split.blocks));
        else
            field.fail("is not known");
    } else {
        field.fail("is not known");
    }
}

void check_names(const PackedHeader& header, const io::ByteReader& reader) {
    if (header.bits < 8 || header.bits > 16)
        reader.fail(fmt::format("{} bits of a coordinate, 8 to 16 are possible", header.bits));
    if (header.classes.size() > 65536) reader.fail(fmt::format("{} classes, at most 65536", header.classes.size()));
    if (header.has_labels && header.classes.empty()) reader.fail("labels without classes");
    if (header.has_parts && (!header.has_labels || header.categories.size() != header.classes.size()))
        reader.fail(
            fmt::format("parts of {} categories for {} classes", header.categories.size(), header.classes.size()));
    for (const PartCategory& category : header.categories)
        if (category.begin < 0 || category.begin >= category.end || category.end > kMaxParts ||
            category.end - category.begin > 256)
            reader.fail(fmt::format("{} has parts {} to {}", in_quotes(category.name), category.begin, category.end));
    if (header.splits.empty()) reader.fail("names no splits");
    std::set<std::string> names;
    for (const PackedSplit& split : header.splits) {
        if (split.name.empty() || !names.insert(split.name).second)
            reader.fail(fmt::format("the split {} is there twice or has no name", in_quotes(split.name)));
        if (split.blocks.empty()) reader.fail(fmt::format("the split {} has no items", in_quotes(split.name)));
    }
}

/// Every block against the bytes it has: before anything of its size is allocated.
void check_blocks(const PackedHeader& header, const io::ByteReader& reader) {
    const io::Limits& limits = reader.limits();
    int64_t stored = 0, inflated = 0;
    for (const PackedSplit& split : header.splits) {
        for (const PackedBlock& block : split.blocks) {
            constexpr int64_t kMost = int64_t{1} << 48;  // sums stay far from 64 bits
            bool is_possible = block.items >= 1 && block.points >= block.items && block.points <= limits.max_points &&
                               block.crc32 >= 0 && block.crc32 <= UINT32_MAX;
            for (const int64_t bytes : {block.inflated, block.deflated, block.coded})
                is_possible = is_possible && bytes >= 0 && bytes <= kMost;
            if (!is_possible) reader.fail(fmt::format("a block of {} clouds and {} points", block.items, block.points));
            stored = checked_add(stored, checked_add(block.deflated, block.coded));
            if (block.inflated / limits.max_inflation > block.deflated || block.points / kPointsPerByte > block.coded)
                reader.fail(fmt::format("{} bytes cannot hold a block of {} clouds and {} points",
                                        checked_add(block.deflated, block.coded), block.items, block.points));
            inflated = checked_add(inflated, checked_add(block.inflated, 12 * block.points));
            if (inflated > limits.max_inflated)
                reader.fail(fmt::format("more than the limit of {} bytes", limits.max_inflated));
        }
    }
    reader.require_remaining(stored, "blocks");
    if (reader.remaining() && *reader.remaining() > stored)
        reader.fail(fmt::format("{} bytes follow the last block", *reader.remaining() - stored));
}

}  // namespace

std::string packed_header_json(const PackedHeader& header) {
    JsonWriter json;
    json.begin_object().field("format", kPackedFormat).field("bits", header.bits);
    json.field("labels", header.has_labels).field("names", header.has_names).field("parts", header.has_parts);
    const auto put_names = [&](const char* key, const std::vector<std::string>& names) {
        json.key(key).begin_array();
        for (const std::string& name : names) json.value(name);
        json.end_array();
    };
    put_names("classes", header.classes);
    put_names("part_names", header.part_names);
    json.key("categories").begin_array();
    for (const PartCategory& category : header.categories)
        json.begin_object()
            .field("name", category.name)
            .field("begin", category.begin)
            .field("end", category.end)
            .end_object();
    json.end_array().key("splits").begin_array();
    for (const PackedSplit& split : header.splits) {
        json.begin_object().field("name", split.name).key("blocks").begin_array();
        for (const PackedBlock& block : split.blocks)
            json.begin_object()
                .field("items", block.items)
                .field("points", block.points)
                .field("inflated", block.inflated)
                .field("deflated", block.deflated)
                .field("coded", block.coded)
                .field("crc32", block.crc32)
                .end_object();
        json.end_array().end_object();
    }
    json.end_array().end_object();
    return json.text();
}

PackedHeader read_packed_header(io::ByteReader& reader) {
    char magic[8];
    reader.read_exact(magic, 8, "the first bytes");
    if (std::string_view(magic, 8) != kPackedMagic) reader.fail("no packed data set: it does not begin with STPKDATA");
    const auto length = reader.read_number<uint64_t>("the header's length");
    const auto crc = reader.read_number<uint32_t>("the header's checksum");
    if (length > static_cast<uint64_t>(reader.limits().max_metadata))
        reader.fail(fmt::format("a header of {} bytes, at most {}", length, reader.limits().max_metadata));
    const Buffer buffer = reader.read_buffer(static_cast<int64_t>(length), "the header");
    const auto* text = reinterpret_cast<const char*>(buffer.data());
    if (::crc32_z(0, reinterpret_cast<const Bytef*>(text), length) != crc)
        reader.fail("the header is damaged: its checksum differs");
    PackedHeader header;
    int64_t format = 0;
    read_json("the header", {text, length}, [&](JsonField& field) { take_field(field, header, format); });
    if (format != kPackedFormat)
        reader.fail(fmt::format("packed in format {}, this program reads {}", format, kPackedFormat));
    check_names(header, reader);
    check_blocks(header, reader);
    return header;
}

}  // namespace stipple::data
