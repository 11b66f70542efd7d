#include "stipple/io/las.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "stipple/core/parallel.h"
#include "stipple/io/common/conversion.h"
#include "stipple/io/las/header.h"

namespace stipple::io {
namespace {

using namespace las;

constexpr int64_t kChunkBytes = int64_t{4} << 20;  // read at a time
constexpr int64_t kGrain = int64_t{1} << 12;       // points: their records stay in the second-level cache

struct IntBounds {
    std::array<int32_t, 3> min, max;
    IntBounds() {
        min.fill(std::numeric_limits<int32_t>::max());
        max.fill(std::numeric_limits<int32_t>::min());
    }
    void add(const IntBounds& other) {
        for (size_t a = 0; a < 3; ++a) {
            min[a] = std::min(min[a], other.min[a]);
            max[a] = std::max(max[a], other.max[a]);
        }
    }
};

/// Point records into columns. The integers of the positions stay in the memory of the floats until all are known.
class Unpacker {
public:
    Unpacker(const Header& header, const std::vector<Column>& columns, PointCloud& cloud)
        : record_(header.record), columns_(columns), cloud_(cloud) {
        cloud.positions = Array<float, 2>({header.count, 3});
        for (const Column& column : columns)
            cloud.attributes.emplace_back(column.name, column.dtype, header.count, column.components);
    }

    void unpack(const std::byte* records, int64_t first, int64_t count) {
        parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
            const std::byte* from = records + begin * record_;
            const int64_t row = first + begin, n = end - begin;
            std::byte* xyz = reinterpret_cast<std::byte*>(cloud_.positions.data() + 3 * row);
            copy_column<12>(from, record_, xyz, 12, n);
            IntBounds part;
            for (int64_t i = 0; i < n; ++i)
                for (int64_t a = 0; a < 3; ++a) {
                    const auto value = number_at<int32_t>(xyz, 12 * i + 4 * a);
                    part.min[a] = std::min(part.min[a], value);
                    part.max[a] = std::max(part.max[a], value);
                }
            for (size_t c = 0; c < columns_.size(); ++c) {
                const Column& column = columns_[c];
                Attribute& attribute = cloud_.attributes[c];
                const int64_t bytes = attribute.row_bytes();
                std::byte* to = attribute.data() + row * bytes;
                if (column.bits == 0) {
                    copy_values(from + column.offset, record_, to, bytes, bytes, n);
                    continue;
                }
                const int mask = (1 << column.bits) - 1, shift = column.shift;
                for (int64_t i = 0; i < n; ++i)
                    to[i] =
                        static_cast<std::byte>((static_cast<int>(from[i * record_ + column.offset]) >> shift) & mask);
            }
            const std::lock_guard lock(mutex_);
            bounds_.add(part);
        });
    }

    const IntBounds& bounds() const { return bounds_; }

private:
    const int64_t record_;
    const std::vector<Column>& columns_;
    PointCloud& cloud_;
    IntBounds bounds_;
    std::mutex mutex_;
};

void place_positions(const Header& header, const IntBounds& bounds, const Records& records, PointCloud& cloud,
                     Warnings& warnings) {
    if (cloud.size() == 0) {
        if (records.own_origin) cloud.origin = *records.own_origin;
        return;
    }
    std::array<double, 3> min, max;
    for (size_t a = 0; a < 3; ++a) {
        const double one = bounds.min[a] * header.scale[a] + header.offset[a];
        const double two = bounds.max[a] * header.scale[a] + header.offset[a];
        min[a] = std::min(one, two);
        max[a] = std::max(one, two);
    }
    // Our own files keep the origin they were written from; a program that moved the points has changed the offset.
    const bool own = records.own_origin && *records.own_origin == header.offset;
    cloud.origin = own ? header.offset : choose_origin(min, max);

    std::array<double, 3> shift;
    for (size_t a = 0; a < 3; ++a) {
        shift[a] = header.offset[a] - cloud.origin[a];
        const double reach = std::max(std::abs(min[a] - cloud.origin[a]), std::abs(max[a] - cloud.origin[a]));
        if (!(reach <= std::numeric_limits<float>::max()))
            fail_at(at::kScale + 8 * static_cast<int64_t>(a),
                    fmt::format("scale {} and offset {} put points beyond float32", header.scale[a], header.offset[a]));
        const auto largest = static_cast<float>(reach);
        const double step =
            static_cast<double>(std::nextafter(largest, std::numeric_limits<float>::infinity())) - largest;
        if (!own && step > std::abs(header.scale[a]) * (1 + 1e-9))
            warnings.push_back(
                fmt::format("LAS: {} reaches {:.6g} about the origin, where float32 has steps of {:.3g}; the "
                            "file's scale {:.3g} is finer",
                            "xyz"[a], largest, step, header.scale[a]));
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

/// Extra bytes of a name that a standard column has too: they take its place when that holds nothing.
void resolve_names(PointCloud& cloud, size_t standard) {
    for (size_t i = standard; i < cloud.attributes.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
            if (cloud.attributes[j].name() != cloud.attributes[i].name()) continue;
            if (j < standard && is_default(cloud.attributes[j])) {
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

/// The attributes as they were when stipple wrote the file: type, order, and no columns that it did not have.
void restore_own(PointCloud& cloud, const std::vector<OwnAttribute>& own) {
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
        if (!is_default(attribute)) restored.push_back(std::move(attribute));
    cloud.attributes = std::move(restored);
}

FileFacts facts_of(const Header& header, const Records& records) {
    FileFacts facts;
    facts.coordinate_system = records.projection;
    facts.grid = FileFacts::Grid{header.scale, header.offset};
    if (header.minor >= 2)
        facts.time_type =
            header.encoding & kAdjustedTime ? TimeType::gps_adjusted_standard : TimeType::gps_week_seconds;
    facts.synthetic_returns = header.encoding & kSyntheticReturns;
    return facts;
}

}  // namespace

Mesh parse_las(ByteReader& reader, const ReadOptions&, Warnings& warnings) {
    const Header header = read_header(reader, warnings);
    const Records records = read_records(reader, header, warnings);
    std::vector<Column> columns = columns_of(header.format);
    const size_t standard = columns.size();
    int64_t described = kRecordBytes[header.format];
    for (const ExtraColumn& extra : records.extra) {
        columns.push_back(extra.column);
        described = extra.column.offset + extra.column.components * size_of(extra.column.dtype);
    }
    if (described < header.record)
        warnings.push_back(
            fmt::format("LAS: {} bytes of each point are not described: dropped", header.record - described));
    if (has_wave_packets(header.format)) warnings.push_back("LAS: wave packets are dropped");

    Mesh mesh;
    PointCloud& cloud = mesh.vertices;
    const int64_t total = header.count * header.record;
    if (reader.remaining()) {
        Unpacker unpacker(header, columns, cloud);
        const int64_t step = std::max<int64_t>(1, kChunkBytes / header.record);
        Buffer chunk(std::min(header.count, step) * header.record);
        for (int64_t done = 0; done < header.count; done += step) {
            const int64_t count = std::min(step, header.count - done);
            reader.read_exact(chunk.data(), count * header.record, "the points");
            unpacker.unpack(chunk.data(), done, count);
        }
        place_positions(header, unpacker.bounds(), records, cloud, warnings);
    } else {
        // A pipe: the points must have arrived before memory is given to their columns.
        const Buffer bytes = reader.read_buffer(total, "the points");
        Unpacker unpacker(header, columns, cloud);
        unpacker.unpack(bytes.data(), 0, header.count);
        place_positions(header, unpacker.bounds(), records, cloud, warnings);
    }
    for (size_t i = standard; i < columns.size(); ++i)
        if (records.extra[i - standard].scaled)
            cloud.attributes[i] = scaled(cloud.attributes[i], records.extra[i - standard]);
    resolve_names(cloud, standard);
    if (records.own_origin) restore_own(cloud, records.own);
    cloud.facts = facts_of(header, records);
    return mesh;
}

}  // namespace stipple::io
