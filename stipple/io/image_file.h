#pragma once
// PNG and JPEG. Inputs are hostile: sizes are checked against limits.h and against the bytes at hand before anything is
// allocated, and a file that ends early is an Error{bad_file}, never a picture with a grey rest.

#include <string>

#include "stipple/core/atomic_file.h"
#include "stipple/core/image.h"
#include "stipple/io/byte_source.h"

namespace stipple::io {

/// Any PNG: 16 bits are reduced to 8, palettes and 1, 2, 4 bits expanded, transparency becomes alpha, interlaced files
/// are put in order. Grey stays 1 channel, RGB 3, RGBA 4; grey with alpha becomes RGBA. Colour profiles are ignored.
Image parse_png(ByteReader& reader);

/// Grey (1 channel) or colour (3) JPEG, baseline or progressive; CMYK is refused. The picture is turned as its EXIF
/// orientation says, so that it is upright; damaged EXIF data is no orientation.
Image parse_jpeg(ByteReader& reader);

/// The pixels as they are stored, and the EXIF orientation, 1 to 8 (1: upright, or none): for programs whose numbers
/// count stored pixels, as COLMAP's do.
Image parse_jpeg_as_stored(ByteReader& reader, int& orientation);

/// Stored pixels of an EXIF orientation as they are to be seen: mirrored, turned by quarters; 5 to 8 swap width and
/// height. Throws Error{bad_argument} for other numbers.
Image turned_upright(const Image& stored, int orientation);

/// Lossless; compressed for speed, not for size. Throws Error{bad_argument} unless the image has pixels and 1, 3 or 4
/// channels.
void write_png(const Image& image, ByteSink& sink);

/// `quality` 1 to 100; 1 or 3 channels.
void write_jpeg(const Image& image, ByteSink& sink, int quality = 92);

/// PNG or JPEG by content, upright; "-" is standard input. Errors name the path.
Image load_image(const std::string& path, Limits limits = {});

/// The same without turning it; the orientation of a PNG is 1.
Image load_image_as_stored(const std::string& path, int& orientation, Limits limits = {});

/// Atomic: the file appears complete or not at all.
void save_png(const std::string& path, const Image& image, Overwrite overwrite);
void save_jpeg(const std::string& path, const Image& image, Overwrite overwrite, int quality = 92);

}  // namespace stipple::io
