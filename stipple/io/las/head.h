#pragma once
// What stands before the points of a LAS file that is written: the header and the variable length records. A cloud that
// was read from LAS brings its own, which stay byte for byte except for what has become untrue.

#include "stipple/io/las/plan.h"

namespace stipple::io::las {

/// What the header counts.
struct Tally {
    int64_t count = 0;
    std::array<int64_t, 16> returns = {};
    IntBounds bounds;

    void add(const std::byte* records, int64_t n, int64_t record_bytes, int format);
};

/// Of a header that was read.
int format_of(const LasFacts& las);
int minor_of(const LasFacts& las);
int64_t record_of(const LasFacts& las);

/// A coordinate system in WKT alone; many files have it in GeoTIFF keys as well.
bool needs_wkt(const FileFacts& facts);

struct Head {
    std::string header;   // set_tally() and set_extended() complete it
    std::string records;  // and what else stands before the points
    int64_t bytes() const { return static_cast<int64_t>(header.size() + records.size()); }
};

/// For points that are written as the plan says. `dropped` receives a coordinate system that the format cannot have.
Head head_for(const PointCloud& cloud, const Plan& plan, const Grid& grid, std::vector<std::string>& dropped);

/// For records that are written as they were read.
Head head_as_read(const FileFacts& facts, const Grid& grid);

void set_tally(std::string& header, const Tally& tally, const Grid& grid);

/// The extended records that follow the points, and the fields of the header that point to them; `end` is the byte
/// behind the points. Those of a coordinate system that was forgotten are left out.
std::string extended_for(const FileFacts& facts, int64_t end, std::string& header);

}  // namespace stipple::io::las
