#include "stipple/io/las/unpack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "stipple/core/parallel.h"
#include "stipple/io/common/conversion.h"

namespace stipple::io::las {
namespace {

constexpr int64_t kUnpackGrain = int64_t{1} << 12;  // points: their records stay in the second-level cache

/// Whether every value is the column's default (uint8 where that is not 0).
bool is_default(const Attribute& attribute) {
    const int64_t bytes = attribute.rows() * attribute.row_bytes();
    const auto expected = static_cast<std::byte>(default_of(attribute.name()));
    return bytes == 0 || (attribute.data()[0] == expected &&
                          std::memcmp(attribute.data(), attribute.data() + 1, static_cast<size_t>(bytes - 1)) == 0);
}

Attribute scaled(const Attribute& raw, const ExtraColumn& extra) {
    Attribute result(raw.name(), DType::f64, raw.rows(), raw.components());
    auto* to = reinterpret_cast<double*>(result.data());
    for (int64_t i = 0; i < raw.rows(); ++i)
        for (int64_t c = 0; c < raw.components(); ++c)
            to[i * raw.components() + c] = raw.value(i, c) * extra.scale[c] + extra.offset[c];
    return result;
}

/// World bounds of an axis.
std::pair<double, double> world_range(const Header& header, const IntBounds& bounds, size_t axis) {
    const double one = bounds.min[axis] * header.scale[axis] + header.offset[axis];
    const double two = bounds.max[axis] * header.scale[axis] + header.offset[axis];
    return {std::min(one, two), std::max(one, two)};
}

double reach_of(const Header& header, const IntBounds& bounds, const std::array<double, 3>& origin, size_t axis) {
    const auto [low, high] = world_range(header, bounds, axis);
    return std::max(std::abs(low - origin[axis]), std::abs(high - origin[axis]));
}

}  // namespace

std::vector<Column> file_columns(const Header& header, const Records& records, Warnings& warnings) {
    std::vector<Column> columns = columns_of(header.format);
    int64_t described = kRecordBytes[header.format];
    for (const ExtraColumn& extra : records.extra) {
        columns.push_back(extra.column);
        described = extra.column.offset + extra.column.components * size_of(extra.column.dtype);
    }
    if (described < header.record)
        warnings.push_back(
            fmt::format("LAS: {} bytes of each point are not described: dropped", header.record - described));
    if (has_wave_packets(header.format)) warnings.push_back("LAS: wave packets are dropped");
    return columns;
}

void allocate(const std::vector<Column>& columns, int64_t count, PointCloud& cloud) {
    cloud.positions = Array<float, 2>({count, 3});
    for (const Column& column : columns)
        cloud.attributes.emplace_back(column.name, column.dtype, count, column.components);
}

IntBounds unpack(const std::byte* records, int64_t record_bytes, const std::vector<Column>& columns, int64_t first,
                 int64_t count, PointCloud& cloud) {
    IntBounds bounds;
    std::mutex mutex;
    parallel_for(count, kUnpackGrain, [&](int64_t begin, int64_t end) {
        const std::byte* from = records + begin * record_bytes;
        const int64_t row = first + begin, n = end - begin;
        std::byte* xyz = reinterpret_cast<std::byte*>(cloud.positions.data() + 3 * row);
        copy_column<12>(from, record_bytes, xyz, 12, n);
        IntBounds part;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t a = 0; a < 3; ++a) {
                const auto value = number_at<int32_t>(xyz, 12 * i + 4 * a);
                part.min[a] = std::min(part.min[a], value);
                part.max[a] = std::max(part.max[a], value);
            }
        for (size_t c = 0; c < columns.size(); ++c) {
            const Column& column = columns[c];
            Attribute& attribute = cloud.attributes[c];
            const int64_t bytes = attribute.row_bytes();
            std::byte* to = attribute.data() + row * bytes;
            if (column.bits == 0) {
                copy_values(from + column.offset, record_bytes, to, bytes, bytes, n);
                continue;
            }
            const int mask = (1 << column.bits) - 1, shift = column.shift;
            for (int64_t i = 0; i < n; ++i)
                to[i] =
                    static_cast<std::byte>((static_cast<int>(from[i * record_bytes + column.offset]) >> shift) & mask);
        }
        const std::lock_guard lock(mutex);  // minima and maxima do not depend on the order
        bounds.add(part);
    });
    return bounds;
}

std::array<double, 3> origin_of(const Header& header, const Records& records, const PointCloud& unpacked) {
    // Our own files keep the origin they were written from; a program that moved the points has changed the offset.
    if (records.own_origin && *records.own_origin == header.offset) return header.offset;
    const int64_t n = unpacked.size(), step = std::max<int64_t>(1, n / kOriginSample);
    std::vector<double> sample;
    for (int64_t i = 0; i < n; i += step)
        for (size_t a = 0; a < 3; ++a) {
            int32_t value;
            std::memcpy(&value, unpacked.positions.data() + 3 * i + a, 4);
            sample.push_back(value * header.scale[a] + header.offset[a]);
        }
    return choose_origin(sample);
}

void place_positions(const Header& header, const IntBounds& bounds, PointCloud& cloud) {
    if (cloud.size() == 0) return;
    std::array<double, 3> shift;
    for (size_t a = 0; a < 3; ++a) {
        shift[a] = header.offset[a] - cloud.origin[a];
        if (!(reach_of(header, bounds, cloud.origin, a) <= std::numeric_limits<float>::max()))
            fail_at(at::kScale + 8 * static_cast<int64_t>(a),
                    fmt::format("scale {} and offset {} put points beyond float32", header.scale[a], header.offset[a]));
    }
    float* positions = cloud.positions.data();
    parallel_for(cloud.size(), int64_t{1} << 15, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            for (int64_t a = 0; a < 3; ++a) {
                int32_t value;
                std::memcpy(&value, positions + 3 * i + a, 4);
                positions[3 * i + a] = static_cast<float>(value * header.scale[a] + shift[a]) + 0.0f;  // no -0
            }
    });
}

void warn_coarse(const Header& header, const IntBounds& bounds, const std::array<double, 3>& origin,
                 Warnings& warnings) {
    if (bounds.min[0] > bounds.max[0]) return;
    for (size_t a = 0; a < 3; ++a) {
        const auto largest = static_cast<float>(reach_of(header, bounds, origin, a));
        const double step =
            static_cast<double>(std::nextafter(largest, std::numeric_limits<float>::infinity())) - largest;
        if (step <= std::abs(header.scale[a]) * (1 + 1e-9)) continue;
        warnings.push_back(
            fmt::format("LAS: {} reaches {:.6g} about the origin, where float32 has steps of {:.3g}; the "
                        "file's scale {:.3g} is finer",
                        "xyz"[a], largest, step, header.scale[a]));
        return;
    }
}

void scale_extra(const Records& records, size_t standard, PointCloud& cloud) {
    for (size_t i = 0; i < records.extra.size(); ++i)
        if (records.extra[i].scaled)
            cloud.attributes[standard + i] = scaled(cloud.attributes[standard + i], records.extra[i]);
}

void resolve_names(PointCloud& cloud, size_t standard, bool replace_empty) {
    for (size_t i = standard; i < cloud.attributes.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
            if (cloud.attributes[j].name() != cloud.attributes[i].name()) continue;
            if (replace_empty && j < standard && is_default(cloud.attributes[j])) {
                cloud.attributes.erase(cloud.attributes.begin() + static_cast<std::ptrdiff_t>(j));
                --i;
                --standard;
            } else {
                cloud.attributes[i].rename("extra_" + cloud.attributes[i].name());
                j = static_cast<size_t>(-1);  // the new name may be taken as well
                continue;
            }
            break;
        }
    }
}

void restore_own(PointCloud& cloud, const std::vector<OwnAttribute>& own, bool only_own) {
    Attributes restored;
    for (const OwnAttribute& wanted : own) {
        const auto found = std::find_if(cloud.attributes.begin(), cloud.attributes.end(), [&](const Attribute& a) {
            return a.name() == wanted.name && a.components() == wanted.components;
        });
        if (found == cloud.attributes.end()) continue;
        Attribute attribute = std::move(*found);
        cloud.attributes.erase(found);
        if (attribute.dtype() == DType::u16 && wanted.dtype == DType::u8 && wanted.name == "color")
            narrow_color(attribute, attribute);
        else if (attribute.dtype() == DType::i16 && wanted.dtype == DType::i8 && wanted.name == "scan_angle")
            steps_to_degrees(attribute, attribute);
        else if (attribute.dtype() != wanted.dtype)
            convert_exactly(attribute, wanted.dtype, attribute);
        restored.push_back(std::move(attribute));
    }
    for (Attribute& attribute : cloud.attributes)
        if (!only_own && !is_default(attribute)) restored.push_back(std::move(attribute));
    cloud.attributes = std::move(restored);
}

}  // namespace stipple::io::las
