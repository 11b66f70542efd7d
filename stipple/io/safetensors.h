#pragma once
// safetensors: named tensors in one file, with text metadata. The format of weights.
//
// 8 bytes little-endian header length N, N bytes of JSON, then the data. The reader accepts exactly what the
// specification allows and checks everything before it allocates: N against the limit and the file, UTF-8 and JSON of
// the expected shape only (no unknown keys, no duplicates), every tensor's byte range against its shape and type,
// ranges that follow each other without hole or overlap and end where the file ends. Values are not looked at, except
// that a BOOL byte is 0 or 1.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/atomic_file.h"
#include "stipple/core/buffer.h"
#include "stipple/core/dtype.h"
#include "stipple/io/byte_source.h"

namespace stipple::io {

struct Tensor {
    std::string name;
    DType dtype = DType::f32;
    std::vector<int64_t> shape;  // empty: one number
    Buffer data;                 // on the CPU; exactly the shape's bytes, last dimension fastest
};

struct TensorFile {
    std::vector<Tensor> tensors;
    std::map<std::string, std::string> metadata;
};

/// What the header says, without the data.
struct TensorHeader {
    struct Entry {
        std::string name;
        DType dtype = DType::f32;
        std::vector<int64_t> shape;
        int64_t begin = 0, end = 0;  // bytes from the start of the data
    };
    std::vector<Entry> tensors;  // in the order of the header
    std::map<std::string, std::string> metadata;
    int64_t data_offset = 0;  // where the data start in the file
    int64_t data_bytes = 0;
};

/// Null when absent.
const Tensor* find(const TensorFile& file, std::string_view name);

/// The name of an element type in the format: "F32", "BOOL".
std::string_view safetensors_dtype(DType dtype);

/// Reads and checks the header; the reader then stands at the data. Throws Error{bad_file}.
TensorHeader read_safetensors_header(ByteReader& reader);

/// The whole file, tensors in the order of the header. Every tensor is read straight into its buffer. Throws
/// Error{bad_file}, Error{out_of_memory}.
TensorFile parse_safetensors(ByteReader& reader);

/// The header lists the tensors in their order and starts the data at a multiple of 64. The data follow by element
/// size, the largest first, so that every tensor is aligned for readers that map the file: PyTorch's refuses others.
/// `format: pt` joins the metadata if it has no `format`. Throws Error{bad_argument} for a shape that does not fit its
/// data, names that are twice there, reserved or not UTF-8, data that are not on the CPU.
void write_safetensors(const TensorFile& file, ByteSink& sink);

/// By path; errors name it. Pickled checkpoints (.pt, .pth, .ckpt, .pkl, by content or name) are refused with a hint.
TensorFile load_safetensors(const std::string& path, const Limits& limits = {});
void save_safetensors(const std::string& path, const TensorFile& file, Overwrite overwrite);

}  // namespace stipple::io
