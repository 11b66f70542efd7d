#include "stipple/io/las/plan.h"

#include <algorithm>

#include "stipple/core/parallel.h"
#include "stipple/io/common/conversion.h"
#include "stipple/io/las.h"
#include "stipple/io/las/head.h"

namespace stipple::io::las {
namespace {

constexpr int64_t kPackGrain = int64_t{1} << 12;

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

/// Whether every attribute that the wide format has a field for fits a field of `format`.
bool holds_all(int format, int wide, const PointCloud& cloud) {
    const std::vector<Column> columns = columns_of(format);
    for (const Column& column : columns_of(wide)) {
        const Attribute* attribute = find(cloud.attributes, column.name);
        Attribute values;
        if (!attribute || !fit(*attribute, column, values)) continue;
        const auto same = std::find_if(columns.begin(), columns.end(),
                                       [&](const Column& other) { return other.name == column.name; });
        if (same == columns.end() || !fit(*attribute, *same, values)) return false;
    }
    return true;
}

/// Point formats from the narrowest to the widest: the first that holds all that any of them can.
int choose_format(const PointCloud& cloud) {
    const bool timed = find(cloud.attributes, "time"), colored = find(cloud.attributes, "color");
    const int narrow = timed ? (colored ? 3 : 1) : (colored ? 2 : 0);
    const int wide = find(cloud.attributes, "nir") ? 8 : colored ? 7 : 6;
    const bool many = cloud.size() > std::numeric_limits<uint32_t>::max();
    if (cloud.facts.las) {
        static constexpr int kWithoutWaves[kFormats] = {0, 1, 2, 3, 1, 3, 6, 7, 8, 6, 8};
        const int kept = kWithoutWaves[format_of(*cloud.facts.las)];
        if ((kept >= 6 || !many) && holds_all(kept, 8, cloud)) return kept;
    }
    if (many || needs_wkt(cloud.facts)) return wide;
    return holds_all(narrow, wide, cloud) ? narrow : wide;
}

}  // namespace

bool Plan::same_layout(const Plan& other) const {
    const auto same = [](const std::vector<Placed>& a, const std::vector<Placed>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Placed& x, const Placed& y) {
            return x.column.name == y.column.name && x.column.dtype == y.column.dtype &&
                   x.column.components == y.column.components && x.column.offset == y.column.offset;
        });
    };
    return format == other.format && record == other.record && same(placed, other.placed) && same(extra, other.extra);
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
        if (name == kLasRecord) continue;  // of points that were moved since
        const auto column =
            std::find_if(standard.begin(), standard.end(), [&](const Column& c) { return c.name == name; });
        Attribute values;
        const std::string line = fmt::format("{} {} {}\n", name_of(attribute.dtype()), attribute.components(), name);
        const Attribute* fitting = column != standard.end() ? fit(attribute, *column, values) : nullptr;
        if (fitting) {
            if (fitting == &values) fitting = &plan.converted.emplace_back(std::move(values));
            plan.placed.push_back({*column, fitting});
            plan.plain = plan.plain && attribute.dtype() == column->dtype;
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
        plan.plain = plan.plain && column == standard.end() && extra.dtype == attribute.dtype();
        plan.record += bytes;
        descriptors += extra.components;
        plan.extra.push_back({std::move(extra), source});
    }
    return plan;
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

void pack(const PointCloud& cloud, const Plan& plan, const Grid& grid, int64_t first, std::byte* records,
          int64_t count) {
    std::vector<Column> defaults;
    for (const Column& column : columns_of(plan.format))
        if (default_of(column.name) != 0 && !find(cloud.attributes, column.name)) defaults.push_back(column);
    parallel_for(count, kPackGrain, [&](int64_t begin, int64_t end) {
        std::byte* to = records + begin * plan.record;
        const int64_t row = first + begin, n = end - begin;
        std::memset(to, 0, static_cast<size_t>(n * plan.record));
        quantise(cloud, grid, row, n, to, plan.record);
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

}  // namespace stipple::io::las
