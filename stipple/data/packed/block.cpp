#include "stipple/data/packed/block.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/data/packed/range_coder.h"

namespace stipple::data {
namespace {

struct Box {
    float lower[3], upper[3];
};

[[noreturn]] void fail(std::string message) {
    throw Error(ErrorCode::bad_file, std::move(message));
}

template <class T>
void put(std::vector<uint8_t>& bytes, const T& value) {
    const auto* from = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(T));
}

std::vector<uint8_t> deflated_bytes(const std::vector<uint8_t>& bytes) {
    uLongf length = ::compressBound(bytes.size());
    std::vector<uint8_t> deflated(length);
    STIPPLE_REQUIRE(::compress2(deflated.data(), &length, bytes.data(), bytes.size(), 9) == Z_OK,
                    "{} bytes cannot be deflated", bytes.size());
    deflated.resize(length);
    return deflated;
}

std::vector<uint8_t> inflated_bytes(std::span<const uint8_t> deflated, int64_t expected) {
    std::vector<uint8_t> bytes(static_cast<size_t>(expected) + 1);  // one more: more than expected must show
    uLongf length = bytes.size();
    const int status = ::uncompress(bytes.data(), &length, deflated.data(), deflated.size());
    if (status == Z_MEM_ERROR) throw Error(ErrorCode::out_of_memory, "no memory to inflate a block");
    if (status != Z_OK || static_cast<int64_t>(length) != expected) fail("the first piece of a block is damaged");
    bytes.resize(length);
    return bytes;
}

Box box_of(View<const float, 2> points, int64_t n) {
    Box box;
    for (int axis = 0; axis < 3; ++axis) {
        box.lower[axis] = box.upper[axis] = points(0, axis);
        for (int64_t i = 1; i < n; ++i) {
            box.lower[axis] = std::min(box.lower[axis], points(i, axis));
            box.upper[axis] = std::max(box.upper[axis], points(i, axis));
        }
    }
    return box;
}

/// The fields of a block, one after the other.
class BlockFields {
public:
    explicit BlockFields(std::span<const uint8_t> bytes) : bytes_(bytes) {}

    /// The next `count` numbers.
    template <class T>
    std::vector<T> take(int64_t count) {
        const std::span<const uint8_t> from = raw(static_cast<uint64_t>(count) * sizeof(T));
        std::vector<T> values(static_cast<size_t>(count));
        if (count > 0) std::memcpy(values.data(), from.data(), from.size());
        return values;
    }
    std::span<const uint8_t> raw(uint64_t count) {
        if (count > bytes_.size()) fail("the first piece of a block is too short");
        const auto taken = bytes_.first(count);
        bytes_ = bytes_.subspan(count);
        return taken;
    }
    bool empty() const { return bytes_.empty(); }

private:
    std::span<const uint8_t> bytes_;
};

void take_labels(const PackedHeader& header, int64_t items, BlockFields& fields, DataSet& set) {
    for (const uint16_t label : fields.take<uint16_t>(items)) {
        if (label >= header.classes.size()) fail(fmt::format("label {}, there are {}", label, header.classes.size()));
        set.labels.push_back(label);
    }
}

void take_names(int64_t items, BlockFields& fields, DataSet& set) {
    for (const uint16_t length : fields.take<uint16_t>(items)) {
        const auto name = fields.raw(length);
        set.names.emplace_back(name.begin(), name.end());
    }
}

void take_parts(const PackedHeader& header, BlockFields& fields, DataSet& set) {
    for (int64_t item = 0; item < set.clouds.size(); ++item) {
        const PartCategory& category = header.categories[static_cast<size_t>(set.labels[static_cast<size_t>(item)])];
        for (const uint8_t part : fields.raw(static_cast<uint64_t>(set.clouds.size_of(item)))) {
            if (part >= category.end - category.begin)
                fail(fmt::format("part {} of {}, which has {}", part, in_quotes(category.name),
                                 category.end - category.begin));
            set.parts.push_back(static_cast<int32_t>(category.begin + part));
        }
    }
}

/// The offsets, from sizes that must add up to what the header says.
void take_sizes(const PackedBlock& block, BlockFields& fields, DataSet& set) {
    for (const uint32_t size : fields.take<uint32_t>(block.items)) {
        if (size == 0 || size > block.points - set.clouds.offsets.back()) fail("sizes of clouds do not add up");
        set.clouds.offsets.push_back(set.clouds.offsets.back() + size);
    }
    if (set.clouds.offsets.back() != block.points) fail("sizes of clouds do not add up");
}

}  // namespace

uint32_t checksum_of(std::span<const uint8_t> deflated, std::span<const uint8_t> coded) {
    return static_cast<uint32_t>(::crc32_z(::crc32_z(0, deflated.data(), deflated.size()), coded.data(), coded.size()));
}

PackedBytes encode_block(const PackedHeader& header, const DataSet& set, int64_t begin, int64_t end, int64_t points) {
    const auto size_of = [&](int64_t item) {
        const int64_t n = set.clouds.size_of(item);
        return points > 0 ? std::min(points, n) : n;
    };
    PackedBytes packed;
    std::vector<uint8_t> fields, names;
    for (int64_t item = begin; item < end; ++item) {
        packed.facts.points += size_of(item);
        put(fields, static_cast<uint32_t>(size_of(item)));
    }
    if (header.has_labels)
        for (int64_t item = begin; item < end; ++item)
            put(fields, static_cast<uint16_t>(set.labels[static_cast<size_t>(item)]));
    const double levels = static_cast<double>((1 << header.bits) - 1);
    NumberModel model(header.bits);
    RangeEncoder coder;
    for (int64_t item = begin; item < end; ++item) {
        const View<const float, 2> cloud = set.points_of(item);
        const int64_t n = size_of(item);
        const Box box = box_of(cloud, n);
        put(fields, box);
        for (int axis = 0; axis < 3; ++axis) {
            const double lower = box.lower[axis], extent = box.upper[axis] - lower;
            packed.largest_error = std::max(packed.largest_error, extent / levels / 2);
            model.forget();
            for (int64_t i = 0; i < n; ++i)
                model.encode(coder, extent > 0
                                        ? static_cast<uint32_t>(std::lround((cloud(i, axis) - lower) / extent * levels))
                                        : 0);
        }
    }
    if (header.has_names) {
        for (int64_t item = begin; item < end; ++item) {
            const std::string& name = set.names[static_cast<size_t>(item)];
            STIPPLE_REQUIRE(name.size() <= UINT16_MAX, "the name of item {} has {} bytes", item, name.size());
            put(fields, static_cast<uint16_t>(name.size()));
            names.insert(names.end(), name.begin(), name.end());
        }
        fields.insert(fields.end(), names.begin(), names.end());
    }
    if (header.has_parts) {
        for (int64_t item = begin; item < end; ++item) {
            const int64_t first = set.clouds.offsets[static_cast<size_t>(item)];
            const PartCategory& category =
                header.categories[static_cast<size_t>(set.labels[static_cast<size_t>(item)])];
            for (int64_t i = 0; i < size_of(item); ++i)
                fields.push_back(static_cast<uint8_t>(set.parts[static_cast<size_t>(first + i)] - category.begin));
        }
    }
    packed.deflated = deflated_bytes(fields);
    packed.coded = coder.finish();
    packed.facts.items = end - begin;
    packed.facts.inflated = static_cast<int64_t>(fields.size());
    packed.facts.deflated = static_cast<int64_t>(packed.deflated.size());
    packed.facts.coded = static_cast<int64_t>(packed.coded.size());
    packed.facts.crc32 = checksum_of(packed.deflated, packed.coded);
    return packed;
}

DataSet decode_block(const PackedHeader& header, const PackedBlock& block, std::span<const uint8_t> deflated,
                     std::span<const uint8_t> coded) {
    const std::vector<uint8_t> bytes = inflated_bytes(deflated, block.inflated);
    BlockFields fields(bytes);
    DataSet set;
    take_sizes(block, fields, set);
    if (header.has_labels) take_labels(header, block.items, fields, set);
    const std::vector<Box> boxes = fields.take<Box>(block.items);
    if (header.has_names) take_names(block.items, fields, set);
    if (header.has_parts) take_parts(header, fields, set);
    if (!fields.empty()) fail("the first piece of a block is too long");

    const double levels = static_cast<double>((1 << header.bits) - 1);
    NumberModel model(header.bits);
    RangeDecoder coder(coded);
    set.clouds.points.resize(static_cast<size_t>(3 * block.points));
    for (int64_t item = 0; item < block.items; ++item) {
        const Box& box = boxes[static_cast<size_t>(item)];
        float* const points = set.clouds.points.data() + 3 * set.clouds.offsets[static_cast<size_t>(item)];
        for (int axis = 0; axis < 3; ++axis) {
            const double lower = box.lower[axis], extent = box.upper[axis] - lower;
            if (!(extent >= 0) || !std::isfinite(box.lower[axis]) || !std::isfinite(box.upper[axis]))
                fail(fmt::format("the box of cloud {} of a block is none", item));
            model.forget();
            for (int64_t i = 0; i < set.clouds.size_of(item); ++i)
                points[3 * i + axis] = static_cast<float>(lower + extent * (model.decode(coder) / levels));
        }
        if (coder.is_past_end()) fail("the points of a block end too early");
    }
    if (!coder.is_at_end()) fail("the points of a block end before it does");
    return set;
}

}  // namespace stipple::data
