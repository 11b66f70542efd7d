#include "stipple/io/conversion.h"

#include <cmath>

namespace stipple::io {

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

void warn_left_out(const Mesh& mesh, std::string_view format, bool keeps_faces, bool (*keeps)(const Attribute&),
                   Warnings& warnings) {
    std::string left_out;
    const auto add = [&](std::string_view what) {
        if (!left_out.empty()) left_out += ", ";
        left_out += what;
    };
    if (!keeps_faces && mesh.faces() > 0) add(fmt::format("{} faces", mesh.faces()));
    for (const Attribute& attribute : mesh.vertices.attributes)
        if (!keeps(attribute)) add(attribute.name());
    for (const Attribute& attribute : mesh.face_attributes) add("face attribute " + attribute.name());
    if (!left_out.empty()) warnings.push_back(fmt::format("{} does not hold: {}", format, left_out));
}

}  // namespace stipple::io
