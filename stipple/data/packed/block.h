#pragma once
// Blocks of a packed data set: a few hundred clouds with all that is known of them.

#include "stipple/data/packed/header.h"

namespace stipple::data {

struct PackedBytes {
    PackedBlock facts;  // with the checksum
    std::vector<uint8_t> deflated, coded;
    double largest_error = 0;  // half the largest step
};

/// Items [begin, end) of a set, the first `points` of each (0: all).
PackedBytes encode_block(const PackedHeader& header, const DataSet& set, int64_t begin, int64_t end, int64_t points);

/// What a block holds: a set without classes. The checksum is not looked at. Throws Error{bad_file} without a place.
DataSet decode_block(const PackedHeader& header, const PackedBlock& block, std::span<const uint8_t> deflated,
                     std::span<const uint8_t> coded);

uint32_t checksum_of(std::span<const uint8_t> deflated, std::span<const uint8_t> coded);

}  // namespace stipple::data
