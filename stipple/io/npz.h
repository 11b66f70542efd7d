#pragma once
// NPZ: a zip archive of NPY arrays, and stipple's own lossless container of clouds and meshes.
//
// The archive is read as a stream of local entries, stored or deflated (numpy.savez and savez_compressed, ZIP64 and
// data descriptors included); then its central directory must list exactly the entries that were read. Every size and
// CRC-32 is checked. Refused: encryption, other methods, duplicate names, entries that are no .npy, more than
// limits.max_zip_entries entries, more than limits.max_inflated bytes inflated or limits.max_inflation times the stored
// size, bytes before the first entry or after the archive.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stipple/io/npy.h"

namespace stipple::io {

using NpyArrays = std::vector<std::pair<std::string, NpyArray>>;  // names without ".npy", in file order

NpyArrays parse_npz_arrays(ByteReader& reader);

/// Stored entries, ZIP64 where needed; numpy.load reads it. Throws Error{bad_argument} for duplicate names.
void write_npz_arrays(const NpyArrays& arrays, ByteSink& sink);

/// The same for arrays that lie elsewhere.
struct NpyView {
    std::string name;
    std::vector<int64_t> shape;
    DType dtype = DType::f32;
    const void* data = nullptr;
};
void write_npz_views(const std::vector<NpyView>& arrays, ByteSink& sink);

/// As a mesh. Points are the array positions, else points, xyz, pos or data, else the only array of shape [n, 3 or
/// more] and of floats; [m, n, 3] as in NPY. origin [3] is added to them; triangles (or faces) [m, 3] are integers,
/// checked against n. Every other array of n rows, [n] or [n, c], becomes the attribute of its name, face.NAME of m
/// rows a face attribute; a prefix "attribute." is taken off. What fits nothing is listed in a warning.
Mesh parse_npz(ByteReader& reader, const ReadOptions& options, Warnings& warnings);

/// positions, origin (unless 0), attributes ([n] for one component, else [n, c]), triangles, face.NAME. Attributes
/// whose name has a meaning of its own above are prefixed with "attribute.". Nothing is lost but bfloat16, which
/// becomes float32 and is told in a warning.
void write_npz(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
