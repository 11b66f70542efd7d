#pragma once
// What an input file may ask for. One table for all parsers; an option may raise a limit, a file never does.

#include <cstdint>

namespace stipple::io {

struct Limits {
    int64_t max_points = (int64_t{1} << 31) - 1;  // points, vertices, and triangles alike: indices are int32
    int64_t max_token = 256;                      // characters of one number or word
    int64_t max_line = int64_t{1} << 20;          // bytes of one text line
    int64_t max_header = int64_t{1} << 20;        // bytes of a text header (PLY, PCD)
    int64_t max_properties = 4096;                // columns of one element
    int64_t max_polygon = 1'000'000;              // corners of one face
    int64_t max_npy_header = int64_t{64} << 10;   // bytes
    int64_t max_zip_entries = 65'536;             // of an NPZ
    int64_t max_inflated = int64_t{16} << 30;     // bytes that one compressed file may become
    int64_t max_inflation = 1100;                 // times its stored size; deflate's own bound is 1032
    int64_t max_tensor_rank = 8;
    int64_t max_tensors = 65'536;
    int64_t max_tensor_header = 100'000'000;   // bytes of a safetensors header
    int64_t max_metadata = int64_t{16} << 20;  // bytes of safetensors metadata
    int64_t max_json_depth = 32;
    int64_t max_image_side = 65'535;  // pixels
    int64_t max_image_pixels = int64_t{1} << 28;
    int64_t max_vlrs = 65'536;                    // variable length records of a LAS file
    int64_t max_las_records = int64_t{64} << 20;  // bytes of them that are carried along
    int64_t max_record = int64_t{64} << 20;       // bytes of one record of an event file or a TFRecord
    int64_t max_features = 256;                   // lists of numbers of one record of a TFRecord
    int64_t max_transforms = int64_t{256} << 20;  // bytes of a transforms.json
    int64_t max_views = int64_t{1} << 20;         // photographs and cameras of one scene
};

}  // namespace stipple::io
