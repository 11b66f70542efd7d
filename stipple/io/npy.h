#pragma once
// NPY, numpy's file of one array, format versions 1 to 3 [numpy.lib.format].
//
// Read: bool, int8..64, uint8..64, float16..64, either byte order, C and Fortran order. The header is parsed as the one
// dict literal that it must be, nothing is evaluated. Refused: object arrays (pickle), structured and text types, a
// header longer than limits.max_npy_header, a rank above limits.max_tensor_rank, a shape whose bytes are not exactly
// what follows.

#include <string>
#include <vector>

#include "stipple/io/format.h"

namespace stipple::io {

struct NpyArray {
    std::vector<int64_t> shape;  // empty: one number
    DType dtype = DType::f32;    // never bf16, which numpy does not have
    Buffer data;                 // C order, little-endian

    int64_t elements() const;
    int64_t bytes() const { return elements() * size_of(dtype); }
};

/// One array up to the end of the input; bytes after it are an error.
NpyArray parse_npy_array(ByteReader& reader);

/// Writes format version 1. Throws Error{bad_argument} for bf16 and for data smaller than the shape.
void write_npy_array(const NpyArray& array, ByteSink& sink);

/// The same in two steps, for arrays inside other files and arrays that lie elsewhere.
struct NpyHeader {
    std::vector<int64_t> shape;
    DType dtype = DType::f32;
    bool big_endian = false, fortran_order = false;
    int64_t bytes = 0;  // of the data that follows
    std::string raw;    // the header as it stands in the file
};
NpyHeader read_npy_header(ByteReader& reader);
/// Turns the data of a file into C order and host byte order.
NpyArray decode_npy(const NpyHeader& header, Buffer data);
/// The header of a little-endian array in C order, padded so that data follow at a multiple of 64 bytes.
std::string npy_header(DType dtype, const std::vector<int64_t>& shape);

/// As a cloud: [n, 3] is positions; further columns are attributes: of four, intensity; of six, normal (float32) when
/// each row is of unit length within 1e-3, else color (uint8) when all are whole numbers from 0 to 255; anything else
/// column_3, column_4 ... [m, n, c] holds m clouds: options.item chooses one. Float64 and integers keep their precision
/// through the origin (io/common/world.h). Takes the array over; `reader` is for messages.
PointCloud cloud_from_npy(NpyArray array, const ByteReader& reader, const ReadOptions& options);

Mesh parse_npy(ByteReader& reader, const ReadOptions& options, Warnings& warnings);

/// Positions alone: float32 [n, 3] when the origin is 0, else world coordinates in float64. The rest is dropped with a
/// warning: .npz holds it.
void write_npy(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings);

}  // namespace stipple::io
