#pragma once
// What formats share when they cannot hold everything: conversions of element types, and the list of what is left out.

#include "stipple/io/format.h"

namespace stipple::io {

/// The attribute with its values converted to another type, rounded to float32 where that is asked for; the caller
/// knows that integers fit. CPU only.
Attribute converted(const Attribute& attribute, DType dtype);

/// Whether all values are whole numbers in [low, high].
bool all_whole(const Attribute& attribute, double low, double high);

/// The same values as another type; false, and `to` untouched, when one does not fit exactly. Not to 16-bit floats.
bool convert_exactly(const Attribute& from, DType dtype, Attribute& to);

/// The color as formats of 8 bits a channel have it: itself, or `own`, which receives the high bytes of 16-bit values
/// (the values where none exceeds 255). Tells in a warning where low bytes are lost. Null without a color.
const Attribute* byte_color(const Attributes& attributes, Attribute& own, std::string_view format, Warnings& warnings);

/// Adds "FORMAT cannot hold A, B and C: dropped" when there is anything to tell.
void warn_dropped(const std::vector<std::string>& things, std::string_view format, std::string_view hint,
                  Warnings& warnings);

/// "attribute NAME" for each but those in `kept`.
std::vector<std::string> names_except(const Attributes& attributes, std::initializer_list<std::string_view> kept);

/// Throws Error{bad_argument} for a cloud without points, for formats that cannot say so (FormatInfo::counts).
void require_points(const Mesh& mesh, std::string_view format);

/// warn_dropped for everything that a format leaves out: faces, attributes that `keeps` refuses, attributes of faces.
void warn_left_out(const Mesh& mesh, std::string_view format, bool keeps_faces,
                   bool (*keeps)(const Attribute& attribute), Warnings& warnings);

}  // namespace stipple::io
