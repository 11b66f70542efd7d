#include "stipple/io/common/conversion.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "stipple/core/parallel.h"

namespace stipple::io {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;
constexpr double kExact = 9007199254740992.0;  // from 2^53 on a double does not tell one integer from the next

template <class T>
bool convert(const Attribute& from, Attribute& to) {
    Attribute result(from.name(), to.dtype(), from.rows(), from.components());
    T* out = reinterpret_cast<T*>(result.data());
    const int64_t size = size_of(from.dtype());
    std::atomic<bool> exact{true};
    parallel_for(from.rows() * from.components(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const double value = load_as_double(from.dtype(), from.data() + i * size);
            bool fits = size < 8 || is_float(from.dtype()) || std::abs(value) < kExact;
            if constexpr (std::is_integral_v<T>)
                fits = fits && value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
                       value <= static_cast<double>(std::numeric_limits<T>::max()) && std::abs(value) < kExact &&
                       value == std::floor(value);
            else
                fits = fits && (static_cast<double>(static_cast<T>(value)) == value || std::isnan(value));
            if (!fits) {
                exact.store(false, std::memory_order_relaxed);
                return;
            }
            out[i] = static_cast<T>(value);
        }
    });
    if (exact) to = std::move(result);
    return exact;
}

}  // namespace

Attribute converted(const Attribute& attribute, DType dtype) {
    Attribute result(attribute.name(), dtype, attribute.rows(), attribute.components());
    for (int64_t i = 0; i < attribute.rows() * attribute.components(); ++i) {
        const double value = load_as_double(attribute.dtype(), attribute.data() + i * size_of(attribute.dtype()));
        std::byte* to = result.data() + i * size_of(dtype);
        switch (dtype) {
            case DType::u8: *reinterpret_cast<uint8_t*>(to) = static_cast<uint8_t>(value); break;
            case DType::u16: *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(value); break;
            case DType::i32: *reinterpret_cast<int32_t*>(to) = static_cast<int32_t>(value); break;
            case DType::u32: *reinterpret_cast<uint32_t*>(to) = static_cast<uint32_t>(value); break;
            case DType::f32: *reinterpret_cast<float*>(to) = static_cast<float>(value); break;
            case DType::f64: *reinterpret_cast<double*>(to) = value; break;
            default: STIPPLE_ASSERT(!"a type that nobody converts to");
        }
    }
    return result;
}

bool all_whole(const Attribute& attribute, double low, double high) {
    for (int64_t i = 0; i < attribute.rows() * attribute.components(); ++i) {
        const double value = load_as_double(attribute.dtype(), attribute.data() + i * size_of(attribute.dtype()));
        if (!(value >= low && value <= high && value == std::trunc(value))) return false;
    }
    return true;
}

bool convert_exactly(const Attribute& from, DType dtype, Attribute& to) {
    Attribute result(from.name(), dtype, 0, from.components());
    bool exact = false;
    switch (dtype) {
        case DType::u8: exact = convert<uint8_t>(from, result); break;
        case DType::i8: exact = convert<int8_t>(from, result); break;
        case DType::u16: exact = convert<uint16_t>(from, result); break;
        case DType::i16: exact = convert<int16_t>(from, result); break;
        case DType::u32: exact = convert<uint32_t>(from, result); break;
        case DType::i32: exact = convert<int32_t>(from, result); break;
        case DType::u64: exact = convert<uint64_t>(from, result); break;
        case DType::i64: exact = convert<int64_t>(from, result); break;
        case DType::f32: exact = convert<float>(from, result); break;
        case DType::f64: exact = convert<double>(from, result); break;
        case DType::boolean: exact = convert<bool>(from, result); break;
        case DType::f16:
        case DType::bf16: break;
    }
    if (exact) to = std::move(result);
    return exact;
}

const Attribute* byte_color(const Attributes& attributes, Attribute& own, std::string_view format, Warnings& warnings) {
    const Attribute* color = find(attributes, "color");
    if (!color || color->dtype() != DType::u16) return color;
    const bool small = color_maximum(*color) == 255;
    Attribute bytes(color->name(), DType::u8, color->rows(), color->components());
    const auto* from = reinterpret_cast<const uint16_t*>(color->data());
    const int64_t channels = color->components();
    std::atomic<bool> lossy{false};
    parallel_for(color->rows(), kGrain, [&](int64_t begin, int64_t end) {
        bool loses = false;
        for (int64_t i = begin * channels; i < end * channels; ++i) {
            // Alpha counts for nothing in color_maximum() and may be full while the colors are small.
            const uint16_t value = small ? std::min<uint16_t>(from[i], 255) : from[i] >> 8;
            // Made from bytes: times 256, as most programs do, or times 257, as the standard asks for.
            loses = loses || (!small && (from[i] & 255) != 0 && (from[i] & 255) != value);
            bytes.data()[i] = static_cast<std::byte>(value);
        }
        if (loses) lossy.store(true, std::memory_order_relaxed);
    });
    if (lossy)
        warnings.push_back(
            fmt::format("{}: colors of 16 bits are written with 8; --keep-16-bit keeps them in .ply, "
                        ".pcd and .xyzrgb",
                        format));
    own = std::move(bytes);
    return &own;
}

void warn_dropped(const std::vector<std::string>& things, std::string_view format, std::string_view hint,
                  Warnings& warnings) {
    if (things.empty()) return;
    std::string list;
    for (size_t i = 0; i < things.size(); ++i)
        list += (i == 0 ? "" : i + 1 == things.size() ? " and " : ", ") + things[i];
    warnings.push_back(fmt::format("{} cannot hold {}: dropped{}{}", format, list, hint.empty() ? "" : "; ", hint));
}

std::vector<std::string> names_except(const Attributes& attributes, std::initializer_list<std::string_view> kept) {
    std::vector<std::string> names;
    for (const Attribute& attribute : attributes)
        if (std::find(kept.begin(), kept.end(), attribute.name()) == kept.end())
            names.push_back("attribute " + attribute.name());
    return names;
}

void require_points(const Mesh& mesh, std::string_view format) {
    if (mesh.vertices.size() > 0) return;
    throw Error(ErrorCode::bad_argument, fmt::format("{} cannot hold a cloud of no points", format),
                "write .ply, .pcd, .las or .npz instead");
}

void warn_left_out(const Mesh& mesh, std::string_view format, bool keeps_faces, bool (*keeps)(const Attribute&),
                   Warnings& warnings) {
    std::vector<std::string> things;
    if (!keeps_faces && mesh.faces() > 0) things.push_back("faces");
    for (const Attribute& attribute : mesh.vertices.attributes)
        if (!keeps(attribute)) things.push_back("attribute " + attribute.name());
    for (const Attribute& attribute : mesh.face_attributes) things.push_back("face attribute " + attribute.name());
    warn_dropped(things, format, "", warnings);
}

}  // namespace stipple::io
