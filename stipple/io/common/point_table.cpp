#include "stipple/io/common/point_table.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>

#include "stipple/core/parallel.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

constexpr int64_t kGrain = 16384;                   // rows per chunk of parallel work
constexpr int64_t kChunkBytes = int64_t{2} << 20;   // rows are read and written in chunks of about this size
constexpr int64_t kBlockPoints = int64_t{1} << 17;  // 3 MiB of float64 coordinates

const Field* find_field(const std::vector<Field>& fields, std::string_view name) {
    for (const Field& field : fields)
        if (field.name == name) return &field;
    return nullptr;
}

/// All of `names`, when they exist and share a type.
std::vector<Field> find_fields(const std::vector<Field>& fields, std::initializer_list<std::string_view> names) {
    std::vector<Field> found;
    for (std::string_view name : names) {
        const Field* field = find_field(fields, name);
        if (!field || (!found.empty() && field->dtype != found.front().dtype)) return {};
        found.push_back(*field);
    }
    return found;
}

/// "NAME_7" -> NAME and 7; -1 when it has no number.
int64_t split_number(std::string_view name, std::string_view& stem) {
    const size_t bar = name.rfind('_');
    if (bar == std::string_view::npos || bar == 0 || bar + 1 == name.size() || name.size() - bar > 5) return -1;
    int64_t number = 0;
    for (char c : name.substr(bar + 1)) {
        if (c < '0' || c > '9') return -1;
        number = number * 10 + (c - '0');
    }
    stem = name.substr(0, bar);
    return number;
}

/// The usual name of what other programs call otherwise (CloudCompare's "scalar_Intensity"); any other name unchanged.
std::string usual_name(const std::string& name) {
    const std::string lower = lower_case(name);
    if (lower == "intensity" || lower == "scalar_intensity") return "intensity";
    if (lower == "label" || lower == "scalar_label" || lower == "classification" || lower == "scalar_classification")
        return "label";
    return name;
}

bool contiguous(const std::vector<Field>& fields, DType dtype) {
    for (size_t i = 0; i < fields.size(); ++i)
        if (fields[i].dtype != dtype || fields[i].offset != fields[0].offset + static_cast<int64_t>(i) * size_of(dtype))
            return false;
    return true;
}

template <int64_t Bytes>
void copy_cells(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, Bytes);
}

void copy_cells(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count,
                int64_t bytes) {
    switch (bytes) {
        case 1: return copy_cells<1>(from, from_stride, to, to_stride, count);
        case 2: return copy_cells<2>(from, from_stride, to, to_stride, count);
        case 3: return copy_cells<3>(from, from_stride, to, to_stride, count);
        case 4: return copy_cells<4>(from, from_stride, to, to_stride, count);
        case 8: return copy_cells<8>(from, from_stride, to, to_stride, count);
        case 12: return copy_cells<12>(from, from_stride, to, to_stride, count);
        default:
            for (int64_t i = 0; i < count; ++i)
                std::memcpy(to + i * to_stride, from + i * from_stride, static_cast<size_t>(bytes));
    }
}

}  // namespace

int64_t pack_fields(std::vector<Field>& fields) {
    int64_t offset = 0;
    for (Field& field : fields) {
        field.offset = offset;
        offset += size_of(field.dtype);
    }
    return offset;
}

void GrowingBuffer::reserve(int64_t bytes) {
    if (bytes > buffer_.bytes()) reserve_exactly(std::max(bytes, 2 * buffer_.bytes()));
}

void GrowingBuffer::reserve_exactly(int64_t bytes) {
    if (bytes <= buffer_.bytes()) return;
    Buffer larger(bytes);
    if (buffer_.bytes()) std::memcpy(larger.data(), buffer_.data(), static_cast<size_t>(buffer_.bytes()));
    buffer_ = std::move(larger);
}

void PositionBuilder::append(const double* xyz, int64_t count) {
    while (count > 0) {
        const int64_t used = size_ % kBlockPoints;
        // The first block is sized by what arrives, so that a small file stays small.
        if (used == 0 && size_ / kBlockPoints == static_cast<int64_t>(blocks_.size()))
            blocks_.emplace_back(24 * (size_ == 0 ? std::min(count, kBlockPoints) : kBlockPoints));
        Buffer& block = blocks_.back();
        if (block.bytes() / 24 == used) {
            Buffer larger(24 * std::min(std::max(2 * used, used + count), kBlockPoints));
            std::memcpy(larger.data(), block.data(), static_cast<size_t>(24 * used));
            block = std::move(larger);
        }
        const int64_t step = std::min(count, block.bytes() / 24 - used);
        std::memcpy(block.data() + 24 * used, xyz, static_cast<size_t>(24 * step));
        size_ += step;
        xyz += 3 * step;
        count -= step;
    }
}

std::vector<double> PositionBuilder::sample() const {
    std::vector<double> xyz;
    const int64_t step = std::max<int64_t>(1, size_ / kOriginSample);
    for (int64_t i = 0; i < size_; i += step) {
        const auto* p = reinterpret_cast<const double*>(blocks_[i / kBlockPoints].data()) + 3 * (i % kBlockPoints);
        if (std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2])) xyz.insert(xyz.end(), p, p + 3);
    }
    return xyz;
}

void PositionBuilder::finish(PointCloud& cloud) {
    const auto blocks = static_cast<int64_t>(blocks_.size());
    std::atomic<bool> exact{true};  // float32 holds every coordinate
    const auto rows_in = [&](int64_t block) { return std::min(kBlockPoints, size_ - block * kBlockPoints); };
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
            const auto* p = reinterpret_cast<const double*>(blocks_[block].data());
            bool same = true;
            for (int64_t i = 0; i < 3 * rows_in(block); ++i)
                same &= !std::isfinite(p[i]) || static_cast<double>(static_cast<float>(p[i])) == p[i];
            if (!same) exact.store(false, std::memory_order_relaxed);
        }
    });
    if (origin_)
        cloud.origin = *origin_;
    else if (!exact)
        cloud.origin = choose_origin(sample());
    cloud.positions = Array<float, 2>({size_, 3});
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
            const auto* from = reinterpret_cast<const double*>(blocks_[block].data());
            float* to = cloud.positions.data() + 3 * block * kBlockPoints;
            for (int64_t i = 0; i < 3 * rows_in(block); ++i) to[i] = static_cast<float>(from[i] - cloud.origin[i % 3]);
            blocks_[block] = Buffer();
        }
    });
}

PointTable::PointTable(const std::vector<Field>& fields, int64_t row_bytes, int64_t expected_rows)
    : row_bytes_(row_bytes), expected_rows_(expected_rows) {
    std::set<std::string_view> names;
    for (const Field& field : fields)
        if (!names.insert(field.name).second)
            throw Error(ErrorCode::bad_file, fmt::format("two columns are named {}", in_quotes(field.name)));
    plan(fields);
    if (expected_rows_ > 0)
        for (Group& group : groups_) group.data.reserve_exactly(checked_mul(expected_rows_, group.row_bytes()));
}

void PointTable::plan(const std::vector<Field>& fields) {
    std::set<std::string> used;
    const auto add = [&](std::string name, std::vector<Field> members, DType dtype) {
        for (const Field& field : members) used.insert(field.name);
        Group group;
        group.name = std::move(name);
        group.dtype = dtype;
        group.contiguous = contiguous(members, dtype);
        group.fields = std::move(members);
        groups_.push_back(std::move(group));
    };
    for (const char* name : {"x", "y", "z"}) {
        const Field* field = find_field(fields, name);
        if (!field) throw Error(ErrorCode::bad_file, fmt::format("has no column named {}", name));
        wide_.push_back(*field);
        used.insert(name);
    }
    if (contiguous(wide_, DType::f32) ||
        (wide_[0].dtype == DType::f32 && wide_[1].dtype == DType::f32 && wide_[2].dtype == DType::f32))
        add("", std::exchange(wide_, {}), DType::f32);

    // A group takes its place where its first field stands, so that the order of the file is kept.
    for (const Field& field : fields) {
        if (used.count(field.name)) continue;
        std::vector<Field> members;
        std::string_view stem;
        if (field.name == "nx" && !(members = find_fields(fields, {"nx", "ny", "nz"})).empty() &&
            is_float(field.dtype)) {
            add("normal", std::move(members), DType::f32);
        } else if (field.name == "normal_x" &&
                   !(members = find_fields(fields, {"normal_x", "normal_y", "normal_z"})).empty() &&
                   is_float(field.dtype)) {
            add("normal", std::move(members), DType::f32);
        } else if (field.name == "red" &&
                   (!(members = find_fields(fields, {"red", "green", "blue", "alpha"})).empty() ||
                    !(members = find_fields(fields, {"red", "green", "blue"})).empty())) {
            add("color", std::move(members), field.dtype);
        } else if (field.name == "r" && (!(members = find_fields(fields, {"r", "g", "b", "a"})).empty() ||
                                         !(members = find_fields(fields, {"r", "g", "b"})).empty())) {
            add("color", std::move(members), field.dtype);
        } else if (split_number(field.name, stem) == 0 && !find_field(fields, stem)) {
            for (int64_t i = 0;; ++i) {
                const Field* part = find_field(fields, fmt::format("{}_{}", stem, i));
                if (!part || part->dtype != field.dtype) break;
                members.push_back(*part);
            }
            if (members.size() >= 2)
                add(std::string(stem), std::move(members), field.dtype);
            else
                add(field.name, {field}, field.dtype);
        } else {
            const std::string usual = usual_name(field.name);
            add(find_field(fields, usual) ? field.name : usual, {field}, field.dtype);
        }
    }
    // Two spellings of one thing ("nx ny nz" and "normal_x ...") would collide: the later keeps its fields' names.
    std::set<std::string_view> names;
    for (Group& group : groups_)
        if (!names.insert(group.name).second) group.name = group.fields[0].name;
}

void PointTable::reserve(int64_t rows) {
    if (rows <= expected_rows_) return;
    for (Group& group : groups_) group.data.reserve(checked_mul(rows, group.row_bytes()));
}

void PointTable::copy_rows(const Group& group, const std::byte* rows, int64_t row_bytes, int64_t count, std::byte* to) {
    const int64_t stride = group.row_bytes();
    if (group.contiguous) return copy_cells(rows + group.fields[0].offset, row_bytes, to, stride, count, stride);
    const int64_t width = size_of(group.dtype);
    for (const Field& field : group.fields) {
        if (field.dtype == group.dtype) {
            copy_cells(rows + field.offset, row_bytes, to, stride, count, width);
        } else {  // float64 normals
            for (int64_t i = 0; i < count; ++i) {
                const auto value = static_cast<float>(load_as_double(field.dtype, rows + i * row_bytes + field.offset));
                std::memcpy(to + i * stride, &value, sizeof value);
            }
        }
        to += width;
    }
}

void PointTable::append(const std::byte* rows, int64_t count) {
    if (count == 0) return;
    reserve(rows_ + count);
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
        for (Group& group : groups_)
            copy_rows(group, rows + begin * row_bytes_, row_bytes_, end - begin,
                      group.data.data() + (rows_ + begin) * group.row_bytes());
    });
    if (!wide_.empty() && row_bytes_ == 24 && contiguous(wide_, DType::f64) &&
        reinterpret_cast<uintptr_t>(rows) % alignof(double) == 0) {
        builder_.append(reinterpret_cast<const double*>(rows), count);
    } else if (!wide_.empty()) {
        double points[3 * 256];
        for (int64_t begin = 0; begin < count; begin += 256) {
            const int64_t step = std::min<int64_t>(256, count - begin);
            for (int64_t i = 0; i < step; ++i)
                for (int axis = 0; axis < 3; ++axis)
                    points[3 * i + axis] =
                        load_as_double(wide_[axis].dtype, rows + (begin + i) * row_bytes_ + wide_[axis].offset);
            builder_.append(points, step);
        }
    }
    rows_ += count;
}

std::byte* PointTable::append_directly(int64_t count) {
    if (groups_.size() != 1 || !wide_.empty() || row_bytes_ != 12 || !groups_[0].contiguous) return nullptr;
    reserve(rows_ + count);
    std::byte* to = groups_[0].data.data() + 12 * rows_;
    rows_ += count;
    return to;
}

PointCloud PointTable::finish() {
    PointCloud cloud;
    if (!wide_.empty()) builder_.finish(cloud);
    for (Group& group : groups_) {
        if (&group == &groups_[0] && wide_.empty())
            cloud.positions = Array<float, 2>(group.data.release(), {rows_, 3});
        else
            cloud.attributes.emplace_back(group.name, group.dtype, rows_, static_cast<int64_t>(group.fields.size()),
                                          group.data.release());
    }
    return cloud;
}

void read_rows(ByteReader& reader, PointTable& table, int64_t count, std::string_view what,
               const std::function<void(std::byte* rows, int64_t count)>& to_host) {
    const int64_t row_bytes = table.row_bytes();
    const int64_t chunk_rows = std::max<int64_t>(1, std::min(count, kChunkBytes / row_bytes));
    std::vector<std::byte> chunk;
    for (int64_t done = 0; done < count;) {
        const int64_t rows = std::min(chunk_rows, count - done);
        std::byte* direct = table.append_directly(rows);
        if (!direct) chunk.resize(static_cast<size_t>(chunk_rows * row_bytes));
        std::byte* to = direct ? direct : chunk.data();
        reader.read_exact(to, rows * row_bytes, what);
        if (to_host) to_host(to, rows);
        if (!direct) table.append(to, rows);
        done += rows;
    }
}

void write_rows(ByteSink& sink, int64_t count, int64_t row_bytes,
                const std::function<void(std::byte* to, int64_t begin, int64_t end)>& fill) {
    const int64_t chunk_rows = std::max<int64_t>(1, kChunkBytes / row_bytes);
    Buffer chunk(std::min(count, chunk_rows) * row_bytes);
    for (int64_t begin = 0; begin < count; begin += chunk_rows) {
        const int64_t rows = std::min(chunk_rows, count - begin);
        parallel_for(rows, 8192, [&](int64_t first, int64_t last) {
            fill(chunk.data() + first * row_bytes, begin + first, begin + last);
        });
        sink.write(chunk.data(), rows * row_bytes);
    }
}

std::vector<WrittenField> flatten(const Attributes& attributes) {
    std::vector<WrittenField> fields;
    for (const Attribute& attribute : attributes) {
        const bool is_normal = attribute.name() == "normal" && attribute.components() == 3;
        const bool is_color =
            attribute.name() == "color" && (attribute.components() == 3 || attribute.components() == 4);
        for (int64_t i = 0; i < attribute.components(); ++i) {
            static constexpr const char* kNormal[] = {"nx", "ny", "nz"};
            static constexpr const char* kColor[] = {"red", "green", "blue", "alpha"};
            std::string name = attribute.name();
            if (is_normal)
                name = kNormal[i];
            else if (is_color)
                name = kColor[i];
            else if (attribute.components() > 1)
                name += fmt::format("_{}", i);
            fields.push_back({std::move(name), attribute.dtype(), &attribute, i});
        }
    }
    return fields;
}

}  // namespace stipple::io
