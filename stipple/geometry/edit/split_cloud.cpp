#include "stipple/geometry/split_cloud.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "stipple/core/quoted.h"
#include "stipple/io/text.h"

namespace stipple::geometry {
namespace {

/// A value as 64 bits that are equal for equal values, and as text.
struct ValueKey {
    uint64_t key;
    std::string text() const {
        std::string text;
        if (is_real)
            io::append_number(text, std::bit_cast<double>(key));
        else if (is_natural)
            text = fmt::format("{}", key);
        else
            text = fmt::format("{}", static_cast<int64_t>(key));
        return text;
    }
    bool is_real, is_natural;
};

ValueKey key_of(const Attribute& attribute, int64_t row) {
    const std::byte* element = attribute.data() + row * size_of(attribute.dtype());
    if (is_float(attribute.dtype())) {
        double value = load_as_double(attribute.dtype(), element) + 0.0;  // -0 becomes 0
        if (std::isnan(value)) value = std::nan("");
        if (attribute.dtype() == DType::f32) {  // 0.1f is "0.1"
            std::string text;
            io::append_number(text, static_cast<float>(value));
            if (std::isfinite(value)) io::parse_number(text, value);
        }
        return {std::bit_cast<uint64_t>(value), true, false};
    }
    if (attribute.dtype() == DType::u64) {
        uint64_t value = 0;
        std::memcpy(&value, element, sizeof value);
        return {value, false, true};
    }
    if (attribute.dtype() == DType::i64) {
        int64_t value = 0;
        std::memcpy(&value, element, sizeof value);
        return {static_cast<uint64_t>(value), false, false};
    }
    return {static_cast<uint64_t>(static_cast<int64_t>(load_as_double(attribute.dtype(), element))), false, false};
}

}  // namespace

CloudSplitter CloudSplitter::by_attribute(std::string name) {
    CloudSplitter splitter;
    splitter.attribute_ = std::move(name);
    return splitter;
}

CloudSplitter CloudSplitter::by_tile(double size) {
    STIPPLE_REQUIRE(size > 0 && std::isfinite(size), "a tile must be larger than 0, got {}", size);
    CloudSplitter splitter;
    splitter.tile_ = size;
    return splitter;
}

CloudSplitter CloudSplitter::by_count(int64_t count) {
    STIPPLE_REQUIRE(count >= 1, "a part must have at least 1 point, got {}", count);
    CloudSplitter splitter;
    splitter.count_ = count;
    return splitter;
}

int32_t CloudSplitter::add(std::string name, int64_t most) {
    STIPPLE_REQUIRE(static_cast<int64_t>(names_.size()) < most, "more than {} parts", most);
    names_.push_back(std::move(name));
    return static_cast<int32_t>(names_.size() - 1);
}

void CloudSplitter::assign_values(const PointCloud& piece, int64_t most, std::vector<int32_t>& parts) {
    const Attribute* attribute = find(piece.attributes, attribute_);
    if (!attribute) {
        std::vector<std::string> names;
        for (const Attribute& other : piece.attributes) names.push_back(other.name());
        throw Error(ErrorCode::bad_argument, fmt::format("no attribute {}", in_quotes(attribute_)),
                    names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", ")));
    }
    STIPPLE_REQUIRE(attribute->components() == 1, "{} has {} components: there is no one value to split by", attribute_,
                    attribute->components());
    uint64_t last = 0;
    int32_t part = -1;
    for (int64_t i = 0; i < piece.size(); ++i) {
        const ValueKey value = key_of(*attribute, i);
        if (part < 0 || value.key != last) {  // values come in runs
            const auto [at, is_new] = part_of_value_.emplace(value.key, static_cast<int32_t>(names_.size()));
            if (is_new) add(value.text(), most);
            part = at->second;
            last = value.key;
        }
        parts[i] = part;
    }
}

void CloudSplitter::assign_tiles(const PointCloud& piece, int64_t most, std::vector<int32_t>& parts) {
    std::array<int64_t, 2> last = {};
    int32_t part = -1;
    for (int64_t i = 0; i < piece.size(); ++i) {
        const double x = std::floor(piece.world(i, 0) / tile_), y = std::floor(piece.world(i, 1) / tile_);
        if (!std::isfinite(x) || !std::isfinite(y)) {
            parts[i] = -1;
            continue;
        }
        STIPPLE_REQUIRE(std::abs(x) < 0x1p62 && std::abs(y) < 0x1p62, "tiles of {} are too small for {} {}", tile_,
                        piece.world(i, 0), piece.world(i, 1));
        const std::array<int64_t, 2> tile = {static_cast<int64_t>(x), static_cast<int64_t>(y)};
        if (part < 0 || tile != last) {
            const auto [at, is_new] = part_of_tile_.emplace(tile, static_cast<int32_t>(names_.size()));
            if (is_new) {
                std::string name;
                io::append_number(name, x * tile_ + 0.0);
                name += '_';
                io::append_number(name, y * tile_ + 0.0);
                add(std::move(name), most);
            }
            part = at->second;
            last = tile;
        }
        parts[i] = part;
    }
}

std::vector<int32_t> CloudSplitter::assign(const PointCloud& piece, int64_t most) {
    std::vector<int32_t> parts(static_cast<size_t>(piece.size()));
    if (!attribute_.empty()) {
        assign_values(piece, most, parts);
    } else if (tile_ > 0) {
        assign_tiles(piece, most, parts);
    } else {
        for (int32_t& part : parts) {
            if (seen_ % count_ == 0) add(fmt::format("{:04}", seen_ / count_ + 1), most);
            part = static_cast<int32_t>(seen_++ / count_);
        }
    }
    return parts;
}

std::vector<std::vector<int32_t>> members(const std::vector<int32_t>& parts, size_t count) {
    std::vector<std::vector<int32_t>> found(count);
    for (size_t i = 0; i < parts.size(); ++i) {
        if (parts[i] < 0) continue;
        const auto part = static_cast<size_t>(parts[i]);
        STIPPLE_REQUIRE(part < count, "point {} is of part {}, of {} parts", i, part, count);
        found[part].push_back(static_cast<int32_t>(i));
    }
    return found;
}

}  // namespace stipple::geometry
