#include "stipple/geometry/merge_clouds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "stipple/core/parallel.h"

namespace stipple::geometry {
namespace {

bool is_signed(DType dtype) {
    return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
}

/// The smallest type that holds the values of both.
DType common_type(DType a, DType b) {
    if (a == b) return a;
    if (a == DType::boolean) return b;
    if (b == DType::boolean) return a;
    if (is_float(a) && is_float(b)) return a == DType::f64 || b == DType::f64 ? DType::f64 : DType::f32;
    if (is_float(a) != is_float(b)) {
        const DType real = is_float(a) ? a : b, whole = is_float(a) ? b : a;
        return real != DType::f64 && size_of(whole) <= 2 ? DType::f32 : DType::f64;
    }
    if (is_signed(a) == is_signed(b)) return size_of(a) > size_of(b) ? a : b;
    const DType negative = is_signed(a) ? a : b, natural = is_signed(a) ? b : a;
    if (size_of(negative) > size_of(natural)) return negative;
    switch (size_of(natural)) {
        case 1: return DType::i16;
        case 2: return DType::i32;
        case 4: return DType::i64;
        default: return DType::f64;
    }
}

double color_full(DType dtype) {
    return dtype == DType::u8 ? 255 : dtype == DType::u16 ? 65535 : 1;
}

template <class To>
void convert_rows(const Attribute& from, To* to, double scale) {
    const int64_t width = size_of(from.dtype());
    parallel_for(from.rows(), 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin * from.components(); i < end * from.components(); ++i) {
            const std::byte* element = from.data() + i * width;
            if constexpr (std::is_integral_v<To>) {
                if (scale == 1) {  // exact: the type was chosen to hold it
                    if (from.dtype() == DType::u64) {
                        uint64_t value = 0;
                        std::memcpy(&value, element, sizeof value);
                        to[i] = static_cast<To>(value);
                    } else if (from.dtype() == DType::i64) {
                        int64_t value = 0;
                        std::memcpy(&value, element, sizeof value);
                        to[i] = static_cast<To>(value);
                    } else {
                        to[i] = static_cast<To>(static_cast<int64_t>(load_as_double(from.dtype(), element)));
                    }
                } else {
                    constexpr auto kMost = static_cast<double>(std::numeric_limits<To>::max());
                    const double value = load_as_double(from.dtype(), element) * scale;
                    to[i] = static_cast<To>(std::clamp(std::isnan(value) ? 0.0 : std::round(value), 0.0, kMost));
                }
            } else {
                to[i] = static_cast<To>(load_as_double(from.dtype(), element) * scale);
            }
        }
    });
}

Attribute converted(const Attribute& from, const MergePlan::Column& column, double scale) {
    Attribute to(column.name, column.dtype, from.rows(), column.components);
    switch (column.dtype) {
        case DType::u8: convert_rows(from, to.as<uint8_t>().data(), scale); break;
        case DType::i8: convert_rows(from, to.as<int8_t>().data(), scale); break;
        case DType::u16: convert_rows(from, to.as<uint16_t>().data(), scale); break;
        case DType::i16: convert_rows(from, to.as<int16_t>().data(), scale); break;
        case DType::u32: convert_rows(from, to.as<uint32_t>().data(), scale); break;
        case DType::i32: convert_rows(from, to.as<int32_t>().data(), scale); break;
        case DType::u64: convert_rows(from, to.as<uint64_t>().data(), scale); break;
        case DType::i64: convert_rows(from, to.as<int64_t>().data(), scale); break;
        case DType::f32: convert_rows(from, to.as<float>().data(), scale); break;
        case DType::f64: convert_rows(from, to.as<double>().data(), scale); break;
        case DType::f16:
        case DType::bf16:
        case DType::boolean: STIPPLE_ASSERT(false);  // never the type of a mixture
    }
    return to;
}

Attribute filled(const MergePlan::Column& column, int64_t rows) {
    Attribute attribute(column.name, column.dtype, rows, column.components);
    std::memset(attribute.data(), 0, static_cast<size_t>(rows * attribute.row_bytes()));
    const int64_t count = rows * column.components;
    if (column.dtype == DType::f32)
        std::fill_n(attribute.as<float>().data(), count, std::numeric_limits<float>::quiet_NaN());
    if (column.dtype == DType::f64)
        std::fill_n(attribute.as<double>().data(), count, std::numeric_limits<double>::quiet_NaN());
    if (column.dtype == DType::f16 || column.dtype == DType::bf16) {
        const uint16_t nan = column.dtype == DType::f16 ? 0x7e00 : 0x7fc0;
        for (int64_t i = 0; i < count; ++i) std::memcpy(attribute.data() + 2 * i, &nan, 2);
    }
    return attribute;
}

}  // namespace

void CloudSchema::add(const PointCloud& piece) {
    points += piece.size();
    for (const Attribute& attribute : piece.attributes) {
        auto column = std::find_if(columns.begin(), columns.end(), [&](auto& c) { return c.name == attribute.name(); });
        if (column == columns.end()) {
            columns.push_back({attribute.name(), attribute.dtype(), attribute.components()});
            column = columns.end() - 1;
        }
        if (column->name == "color") column->maximum = std::max(column->maximum, stipple::color_maximum(attribute));
    }
}

double CloudSchema::color_maximum() const {
    for (const Column& column : columns)
        if (column.name == "color") return column.maximum;
    return 1;
}

MergePlan plan_merge(std::span<const CloudSchema> clouds, MissingAttributes missing) {
    const auto find_column = [](const auto& columns, const std::string& name) {
        const auto at = std::find_if(columns.begin(), columns.end(), [&](auto& c) { return c.name == name; });
        return at == columns.end() ? nullptr : &*at;
    };
    MergePlan plan;
    std::vector<std::string> dropped;
    for (const CloudSchema& first : clouds) {
        if (first.points == 0) continue;
        for (const CloudSchema::Column& like : first.columns) {
            if (find_column(plan.columns, like.name)) continue;
            if (std::find(dropped.begin(), dropped.end(), like.name) != dropped.end()) continue;
            MergePlan::Column column{like.name, like.dtype, like.components};
            bool is_everywhere = true, same_range = true;
            for (const CloudSchema& cloud : clouds) {
                if (cloud.points == 0) continue;
                const CloudSchema::Column* other = find_column(cloud.columns, like.name);
                is_everywhere = is_everywhere && other;
                if (!other && missing == MissingAttributes::refuse)
                    throw Error(ErrorCode::bad_argument,
                                fmt::format("{} has the attribute {}, {} has not", first.name, like.name, cloud.name),
                                "--missing fill puts 0 or NaN there, --missing drop leaves it out");
                if (!other) continue;
                STIPPLE_REQUIRE(other->components == like.components, "{} is {} x {} in {}, {} x {} in {}", like.name,
                                stipple::name_of(like.dtype), like.components, first.name,
                                stipple::name_of(other->dtype), other->components, cloud.name);
                column.dtype = common_type(column.dtype, other->dtype);
                same_range = same_range && other->maximum == like.maximum;
            }
            if (!is_everywhere && missing == MissingAttributes::drop) {
                dropped.push_back(like.name);
                continue;
            }
            if (!same_range) {
                column.full_range = true;
                column.dtype = is_float(column.dtype) ? DType::f32 : DType::u16;
            }
            plan.columns.push_back(std::move(column));
        }
    }
    return plan;
}

PointCloud fitted(const PointCloud& piece, const MergePlan& plan, double color_maximum) {
    PointCloud fit;
    fit.positions = piece.positions.clone();
    fit.origin = piece.origin;
    fit.facts = piece.facts;
    for (const MergePlan::Column& column : plan.columns) {
        const Attribute* from = find(piece.attributes, column.name);
        const double scale = column.full_range ? color_full(column.dtype) / color_maximum : 1;
        if (!from)
            fit.attributes.push_back(filled(column, piece.size()));
        else if (from->dtype() == column.dtype && scale == 1)
            fit.attributes.push_back(from->clone());
        else
            fit.attributes.push_back(converted(*from, column, scale));
    }
    return fit;
}

bool merge_facts(FileFacts& facts, const FileFacts& other) {
    const bool same = facts.coordinate_system == other.coordinate_system;
    if (!same) facts.coordinate_system.clear();
    if (facts.grid != other.grid) facts.grid.reset();
    if (facts.viewpoint != other.viewpoint) facts.viewpoint.reset();
    if (facts.time_type != other.time_type) facts.time_type = TimeType::unknown;
    facts.synthetic_returns = facts.synthetic_returns || other.synthetic_returns;
    return same;
}

}  // namespace stipple::geometry
