// The writer of LAS: which scale, which point format, which attribute in which bytes.

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <limits>
#include <mutex>

#include "stipple/core/parallel.h"
#include "stipple/io/common/conversion.h"
#include "stipple/io/common/world.h"
#include "stipple/io/las.h"
#include "stipple/io/las/layout.h"

namespace stipple::io {
namespace {

using namespace las;

constexpr int64_t kGrain = int64_t{1} << 12;
constexpr int64_t kScanGrain = int64_t{1} << 15;
constexpr int64_t kChunkBytes = int64_t{4} << 20;
constexpr double kLargest = 2147483646;

// === The scale of an axis

double power_of_ten(int exponent) {
    // By its decimal text: the double nearest to it, which products of doubles are not.
    const std::string text = fmt::format("1e{}", exponent);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

int32_t quantise(float value, double scale) {
    return static_cast<int32_t>(std::nearbyint(std::clamp(value / scale, -kLargest, kLargest)));
}

/// The largest difference between a position of the axis and what is read back; stops at the first with `only_exact`.
double rounding(const float* axis, int64_t n, double scale, bool only_exact) {
    double worst = 0;
    std::mutex mutex;
    std::atomic<bool> stop{false};
    parallel_for(n, kScanGrain, [&](int64_t begin, int64_t end) {
        double error = 0;
        for (int64_t i = begin; i < end && !stop.load(std::memory_order_relaxed); ++i) {
            const float value = axis[3 * i], back = static_cast<float>(quantise(value, scale) * scale);
            if (value == back) continue;
            error = std::max(error, std::abs(static_cast<double>(value) - back));
            if (only_exact) stop.store(true, std::memory_order_relaxed);
        }
        const std::lock_guard lock(mutex);
        worst = std::max(worst, error);
    });
    return worst;
}

/// The exponent of the finest bit set in any position of the axis.
int finest_bit(const float* axis, int64_t n) {
    int finest = std::numeric_limits<int>::max();
    for (int64_t i = 0; i < n; ++i) {
        if (axis[3 * i] == 0) continue;
        int exponent = 0;
        const auto mantissa = static_cast<int32_t>(std::ldexp(std::frexp(axis[3 * i], &exponent), 24));
        finest = std::min(finest, exponent - 24 + __builtin_ctz(static_cast<uint32_t>(std::abs(mantissa))));
    }
    return finest;
}

double choose_scale(const float* axis, int64_t n, double largest, double& worst) {
    worst = 0;
    if (largest == 0) return 0.001;
    // Data that came from decimals are exact in decimals: the coarsest power of ten that tells them apart.
    const int coarsest = std::min(0, static_cast<int>(std::floor(std::log10(largest))));
    for (int exponent = coarsest; largest / power_of_ten(exponent) <= kLargest; --exponent)
        if (rounding(axis, n, power_of_ten(exponent), true) == 0) return power_of_ten(exponent);
    const int bit = finest_bit(axis, n);
    if (largest / std::ldexp(1.0, bit) <= kLargest) return std::ldexp(1.0, bit);
    const double fine = power_of_ten(static_cast<int>(std::floor(std::log10(largest * 0x1p-24))));
    const double scale = fine > 0.001 && largest / 0.001 <= kLargest ? 0.001 : fine;
    worst = rounding(axis, n, scale, false);
    return scale;
}

// === Which attribute goes where

struct Placed {
    Column column;
    const Attribute* source;  // of the column's type
};

struct Plan {
    int format = 0;
    int64_t record = 0;
    std::vector<Placed> placed;
    std::vector<Placed> extra;
    std::vector<Attribute> converted;  // sources that had to change type
    std::string own;                   // the lines of our record
};

bool is_plain_name(const std::string& name) {
    return !name.empty() &&
           std::none_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

/// The values of `attribute` in the column's type: itself, or `own` where they had to change; null when they do not
/// fit.
const Attribute* fit(const Attribute& attribute, const Column& column, Attribute& own) {
    const int64_t components = attribute.components();
    if (column.name == "color") {
        if (components < 3 || components > 4) return nullptr;
        if (attribute.dtype() != DType::u8 && attribute.dtype() != DType::u16) return nullptr;
        const Attribute* opaque = &attribute;
        if (components == 4) {
            Attribute three(attribute.name(), attribute.dtype(), attribute.rows(), 3);
            copy_values(attribute.data(), attribute.row_bytes(), three.data(), three.row_bytes(), three.row_bytes(),
                        attribute.rows());
            own = std::move(three);
            opaque = &own;
        }
        if (opaque->dtype() == DType::u16) return opaque;
        own = widen_color(*opaque);
        return &own;
    }
    if (components != 1) return nullptr;
    const Attribute* result = &attribute;
    if (attribute.dtype() != column.dtype) {
        result = &own;
        if (column.name == "scan_angle") {
            if (attribute.dtype() != DType::i8) return nullptr;
            own = degrees_to_steps(attribute);
        } else if (!convert_exactly(attribute, column.dtype, own)) {
            return nullptr;
        }
    }
    if (column.bits == 0) return result;
    const int limit = 1 << column.bits;
    const bool small = std::none_of(result->data(), result->data() + result->rows(),
                                    [&](std::byte value) { return static_cast<int>(value) >= limit; });
    return small ? result : nullptr;
}

/// A coordinate system in WKT alone; many files have it in GeoTIFF keys as well.
bool needs_wkt(const FileFacts& facts) {
    const std::vector<FileFacts::Record>& records = facts.coordinate_system;
    return !records.empty() && std::all_of(records.begin(), records.end(),
                                           [](const FileFacts::Record& record) { return record.id == kWktRecord; });
}

/// The records of the coordinate system that the point format may have; see las.h.
std::vector<const FileFacts::Record*> projection_records(const FileFacts& facts, int format) {
    std::vector<const FileFacts::Record*> records;
    for (const FileFacts::Record& record : facts.coordinate_system) {
        const bool fits = record.owner == kProjectionUser && record.description.size() <= 32 &&
                          record.bytes.size() <= std::numeric_limits<uint16_t>::max();
        if (fits && (record.id == kWktRecord) == (format >= 6)) records.push_back(&record);
    }
    return records;
}

/// Point formats from the narrowest to the widest: the first that holds all that any of them can.
int choose_format(const PointCloud& cloud) {
    const bool timed = find(cloud.attributes, "time"), colored = find(cloud.attributes, "color");
    const int narrow = timed ? (colored ? 3 : 1) : (colored ? 2 : 0);
    const int wide = find(cloud.attributes, "nir") ? 8 : colored ? 7 : 6;
    if (cloud.size() > std::numeric_limits<uint32_t>::max() || needs_wkt(cloud.facts)) return wide;
    const std::vector<Column> narrow_columns = columns_of(narrow);
    for (const Column& column : columns_of(wide)) {
        const Attribute* attribute = find(cloud.attributes, column.name);
        Attribute values;
        if (!attribute || !fit(*attribute, column, values)) continue;
        const auto same = std::find_if(narrow_columns.begin(), narrow_columns.end(),
                                       [&](const Column& other) { return other.name == column.name; });
        if (same == narrow_columns.end() || !fit(*attribute, *same, values)) return wide;
    }
    return narrow;
}

Plan make_plan(const PointCloud& cloud, std::vector<std::string>& dropped, Warnings& warnings) {
    Plan plan;
    plan.format = choose_format(cloud);
    plan.record = kRecordBytes[plan.format];
    plan.converted.reserve(cloud.attributes.size());
    const std::vector<Column> standard = columns_of(plan.format);
    int64_t descriptors = 0;
    for (const Attribute& attribute : cloud.attributes) {
        const std::string& name = attribute.name();
        const auto column =
            std::find_if(standard.begin(), standard.end(), [&](const Column& c) { return c.name == name; });
        Attribute values;
        const std::string line = fmt::format("{} {} {}\n", name_of(attribute.dtype()), attribute.components(), name);
        const Attribute* fitting = column != standard.end() ? fit(attribute, *column, values) : nullptr;
        if (fitting) {
            if (fitting == &values) fitting = &plan.converted.emplace_back(std::move(values));
            plan.placed.push_back({*column, fitting});
            if (name == "color" && attribute.components() == 4) {
                dropped.push_back("alpha");
                plan.own += fmt::format("{} 3 {}\n", name_of(attribute.dtype()), name);
            } else {
                plan.own += line;
            }
            continue;
        }
        Column extra{name, attribute.dtype(), attribute.components(), plan.record, 0, 0};
        const Attribute* source = &attribute;
        if (attribute.dtype() == DType::boolean) extra.dtype = DType::u8;
        if (attribute.dtype() == DType::f16 || attribute.dtype() == DType::bf16) {
            extra.dtype = DType::f32;
            convert_exactly(attribute, DType::f32, values);
            warnings.push_back(
                fmt::format("LAS has no {}: attribute {} is written as float32", name_of(attribute.dtype()), name));
        }
        const size_t longest =
            name.size() + (extra.components > 1 ? fmt::format("[{}]", extra.components - 1).size() : 0);
        const int64_t bytes = extra.components * size_of(extra.dtype);
        if (!is_plain_name(name) || longest > 32 || descriptors + extra.components > 300 ||
            bytes > 65535 - plan.record) {
            dropped.push_back("attribute " + name);
            continue;
        }
        if (extra.dtype == DType::f32 && attribute.dtype() != DType::f32) {
            plan.converted.push_back(std::move(values));
            source = &plan.converted.back();
            plan.own += fmt::format("float32 {} {}\n", extra.components, name);
        } else {
            plan.own += line;
        }
        if (column != standard.end() || name == "intensity" || name == "label")
            warnings.push_back(
                fmt::format("LAS: the values of attribute {} do not fit its field; they are in extra bytes", name));
        plan.record += bytes;
        descriptors += extra.components;
        plan.extra.push_back({std::move(extra), source});
    }
    return plan;
}

// === Bytes

template <class T>
void put(std::string& to, int64_t offset, T value) {
    std::memcpy(to.data() + offset, &value, sizeof value);
}

std::string vlr(std::string_view user, uint16_t id, std::string_view description, const std::string& payload) {
    std::string out(kVlrHeader, '\0');
    std::copy(user.begin(), user.end(), out.begin() + 2);
    put<uint16_t>(out, 18, id);
    put<uint16_t>(out, 20, static_cast<uint16_t>(payload.size()));
    std::copy(description.begin(), description.end(), out.begin() + 22);
    return out + payload;
}

std::string extra_descriptors(const Plan& plan) {
    std::string out;
    for (const Placed& extra : plan.extra) {
        const auto* type = std::find(std::begin(kExtraTypes), std::end(kExtraTypes), extra.column.dtype);
        for (int64_t c = 0; c < extra.column.components; ++c) {
            std::string one(kExtraDescriptor, '\0');
            one[2] = static_cast<char>(type - kExtraTypes + 1);
            const std::string name =
                extra.column.components == 1 ? extra.column.name : fmt::format("{}[{}]", extra.column.name, c);
            one.replace(4, name.size(), name);
            out += one;
        }
    }
    return out;
}

std::array<int64_t, 16> count_returns(const Plan& plan, int64_t n) {
    std::array<int64_t, 16> counts = {};
    for (const Placed& placed : plan.placed)
        if (placed.column.name == "return_number") {
            for (int64_t i = 0; i < n; ++i) ++counts[static_cast<size_t>(placed.source->data()[i]) & 15];
            return counts;
        }
    counts[1] = n;
    return counts;
}

struct Grid {
    std::array<double, 3> scale;
    std::array<int32_t, 3> min, max;
};

std::string header_bytes(const PointCloud& cloud, const Plan& plan, const Grid& grid) {
    const bool wide = plan.format >= 6;
    std::string records;
    uint32_t count = 0;
    if (!plan.extra.empty()) {
        records += vlr("LASF_Spec", 4, "Extra Bytes Record", extra_descriptors(plan));
        ++count;
    }
    for (const FileFacts::Record* record : projection_records(cloud.facts, plan.format)) {
        records += vlr(record->owner, record->id, record->description, record->bytes);
        ++count;
    }
    std::string own(reinterpret_cast<const char*>(cloud.origin.data()), 24);
    records += vlr(kOwnUser, kOwnRecord, "origin and attributes", own + plan.own);
    ++count;

    const int64_t size = wide ? kHeader14 : kHeader12, n = cloud.size();
    std::string h(static_cast<size_t>(size), '\0');
    h.replace(0, 4, "LASF");
    int encoding = wide ? kWkt : 0;  // the standard asks for the WKT bit with these formats
    if (cloud.facts.time_type == TimeType::gps_adjusted_standard) encoding |= kAdjustedTime;
    if (cloud.facts.synthetic_returns) encoding |= kSyntheticReturns;
    put<uint16_t>(h, at::kGlobalEncoding, static_cast<uint16_t>(encoding));
    put<uint8_t>(h, at::kVersion, 1);
    put<uint8_t>(h, at::kVersion + 1, wide ? 4 : 2);
    h.replace(at::kSystem, 5, "OTHER");
    h.replace(at::kSoftware, 7, "stipple");
    put<uint16_t>(h, at::kHeaderSize, static_cast<uint16_t>(size));
    put<uint32_t>(h, at::kPoints, static_cast<uint32_t>(size + static_cast<int64_t>(records.size())));
    put<uint32_t>(h, at::kVlrs, count);
    put<uint8_t>(h, at::kFormat, static_cast<uint8_t>(plan.format));
    put<uint16_t>(h, at::kRecordLength, static_cast<uint16_t>(plan.record));
    const std::array<int64_t, 16> returns = count_returns(plan, n);
    if (wide) {
        put<uint64_t>(h, at::kCount, static_cast<uint64_t>(n));
        for (int64_t r = 1; r <= 15; ++r)
            put<uint64_t>(h, at::kReturns + 8 * (r - 1), static_cast<uint64_t>(returns[static_cast<size_t>(r)]));
    } else {
        put<uint32_t>(h, at::kLegacyCount, static_cast<uint32_t>(n));
        for (int64_t r = 1; r <= 5; ++r)
            put<uint32_t>(h, at::kLegacyReturns + 4 * (r - 1), static_cast<uint32_t>(returns[static_cast<size_t>(r)]));
    }
    for (size_t a = 0; a < 3; ++a) {
        const auto axis = static_cast<int64_t>(a);
        put<double>(h, at::kScale + 8 * axis, grid.scale[a]);
        put<double>(h, at::kOffset + 8 * axis, cloud.origin[a]);
        put<double>(h, at::kBounds + 16 * axis, grid.max[a] * grid.scale[a] + cloud.origin[a]);
        put<double>(h, at::kBounds + 16 * axis + 8, grid.min[a] * grid.scale[a] + cloud.origin[a]);
    }
    return h + records;
}

Grid choose_grid(const PointCloud& cloud, Warnings& warnings) {
    const int64_t n = cloud.size();
    const float* positions = cloud.positions.data();
    for (int64_t i = 0; i < 3 * n; ++i)
        if (!std::isfinite(positions[i]))
            throw Error(ErrorCode::bad_argument,
                        fmt::format("LAS cannot hold the non-finite coordinates of point {}", i / 3),
                        "leave such points out with --drop-nonfinite");
    Grid grid;
    double worst = 0;
    for (size_t a = 0; a < 3; ++a) {
        STIPPLE_REQUIRE(std::isfinite(cloud.origin[a]), "LAS cannot hold a non-finite origin");
        if (n == 0) {
            grid.scale[a] = 0.001;
            grid.min[a] = grid.max[a] = 0;
            continue;
        }
        float low = positions[a], high = positions[a];
        for (int64_t i = 0; i < n; ++i) {
            low = std::min(low, positions[3 * i + static_cast<int64_t>(a)]);
            high = std::max(high, positions[3 * i + static_cast<int64_t>(a)]);
        }
        double error = 0;
        grid.scale[a] = choose_scale(positions + a, n, std::max(std::abs(low), std::abs(high)), error);
        grid.min[a] = quantise(low, grid.scale[a]);
        grid.max[a] = quantise(high, grid.scale[a]);
        worst = std::max(worst, error);
    }
    if (worst > 0)
        warnings.push_back(
            fmt::format("LAS holds integers: positions are rounded by up to {:.3g} (scale {:.3g} {:.3g} {:.3g})", worst,
                        grid.scale[0], grid.scale[1], grid.scale[2]));
    return grid;
}

void pack(const PointCloud& cloud, const Plan& plan, const Grid& grid, int64_t first, std::byte* records,
          int64_t count) {
    std::vector<Column> defaults;
    for (const Column& column : columns_of(plan.format))
        if (default_of(column.name) != 0 && !find(cloud.attributes, column.name)) defaults.push_back(column);
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
        std::byte* to = records + begin * plan.record;
        const int64_t row = first + begin, n = end - begin;
        std::memset(to, 0, static_cast<size_t>(n * plan.record));
        for (int64_t i = 0; i < n; ++i) {
            int32_t xyz[3];
            for (size_t a = 0; a < 3; ++a)
                xyz[a] = quantise(cloud.positions.data()[3 * (row + i) + static_cast<int64_t>(a)], grid.scale[a]);
            std::memcpy(to + i * plan.record, xyz, 12);
        }
        for (const Column& column : defaults)
            for (int64_t i = 0; i < n; ++i)
                to[i * plan.record + column.offset] |= static_cast<std::byte>(default_of(column.name) << column.shift);
        for (const Placed& placed : plan.placed) {
            const Column& column = placed.column;
            const int64_t bytes = placed.source->row_bytes();
            const std::byte* from = placed.source->data() + row * bytes;
            if (column.bits == 0) {
                copy_values(from, bytes, to + column.offset, plan.record, bytes, n);
                continue;
            }
            for (int64_t i = 0; i < n; ++i) to[i * plan.record + column.offset] |= from[i] << column.shift;
        }
        for (const Placed& extra : plan.extra) {
            const int64_t bytes = extra.source->row_bytes();
            copy_values(extra.source->data() + row * bytes, bytes, to + extra.column.offset, plan.record, bytes, n);
        }
    });
}

}  // namespace

void write_las(const Mesh& mesh, ByteSink& sink, const WriteOptions&, Warnings& warnings) {
    const PointCloud& cloud = mesh.vertices;
    const Grid grid = choose_grid(cloud, warnings);
    std::vector<std::string> dropped;
    if (mesh.faces() > 0) dropped.push_back("faces");
    const Plan plan = make_plan(cloud, dropped, warnings);
    if (!cloud.facts.coordinate_system.empty() && projection_records(cloud.facts, plan.format).empty())
        dropped.push_back(fmt::format("a coordinate system in GeoTIFF keys with point format {}", plan.format));
    warn_dropped(dropped, "LAS", "", warnings);

    sink.write(header_bytes(cloud, plan, grid));
    const int64_t n = cloud.size(), step = std::max<int64_t>(1, kChunkBytes / plan.record);
    Buffer chunk(std::min(n, step) * plan.record);
    for (int64_t done = 0; done < n; done += step) {
        const int64_t count = std::min(step, n - done);
        pack(cloud, plan, grid, done, chunk.data(), count);
        sink.write(chunk.data(), count * plan.record);
    }
}

}  // namespace stipple::io
