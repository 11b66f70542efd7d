#pragma once
// LZF, the compression inside binary_compressed PCD files: literal runs and back references of up to 8 KiB.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stipple::io {

/// Three bytes of input make at most 264 of output: what a file may claim, before anything is allocated.
inline constexpr int64_t kLzfMaxRatio = 88;

/// Decompresses exactly output.size() bytes; false when the input is damaged, too short or too long for that.
bool lzf_decompress(std::span<const std::byte> input, std::span<std::byte> output);

std::vector<std::byte> lzf_compress(std::span<const std::byte> input);

}  // namespace stipple::io
