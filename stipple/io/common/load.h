#pragma once
// Loading, in the parts that reading whole and reading in chunks share.

#include "stipple/io/format.h"

namespace stipple::io {

/// The rest of load() behind the opening of the file.
Mesh load_from(ByteReader& reader, const std::string& path, const ReadOptions& options, Warnings& warnings,
               const Format* format, Format* used);

/// The error of a reader, as load() throws it: with the path, and a bad_file where a header asked for the impossible.
/// To be called from a catch block; throws.
[[noreturn]] void rethrow_for(const std::string& path);

}  // namespace stipple::io
