#pragma once
// Which attribute of a cloud goes into which bytes of a point record.

#include "stipple/io/las/grid.h"

namespace stipple::io::las {

struct Placed {
    Column column;
    const Attribute* source;  // of the column's type
};

struct Plan {
    int format = 0;
    int64_t record = 0;
    std::vector<Placed> placed;
    std::vector<Placed> extra;
    std::vector<Attribute> converted;  // sources that had to change type
    std::string own;                   // the lines of our record
    bool plain = true;                 // a reader needs no record of ours to have every attribute as it was

    bool same_layout(const Plan& other) const;
};

/// Wide or narrow, with the fields that there are attributes for: the point format of the file that the cloud comes
/// from where it holds them all (without wave packets), else the narrowest that does. Points into `cloud`.
Plan make_plan(const PointCloud& cloud, std::vector<std::string>& dropped, Warnings& warnings);

/// The payload of the record that describes the extra bytes.
std::string extra_descriptors(const Plan& plan);

/// The points from `first` on as records. Parallel.
void pack(const PointCloud& cloud, const Plan& plan, const Grid& grid, int64_t first, std::byte* records,
          int64_t count);

}  // namespace stipple::io::las
