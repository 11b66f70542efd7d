#pragma once
// What formats share when they cannot hold everything: conversions of element types, and the list of what is left out.

#include "stipple/io/format.h"

namespace stipple::io {

/// Lists in one warning what a format leaves out: faces, and attributes that `keeps` refuses.
void warn_left_out(const Mesh& mesh, std::string_view format, bool keeps_faces,
                   bool (*keeps)(const Attribute& attribute), Warnings& warnings);

/// The attribute with its values converted to another type; the caller knows that they fit. CPU only.
Attribute converted(const Attribute& attribute, DType dtype);

/// Whether all values are whole numbers in [low, high].
bool all_whole(const Attribute& attribute, double low, double high);

}  // namespace stipple::io
