#pragma once
// What a LAS file says of its points, in words.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"

namespace stipple::io {

struct LasSummary {
    int minor = 0, point_format = 0;  // version 1.minor
    std::string system, software;     // as the header has them, without what cannot be printed
    int year = 0, day = 0;            // of the year; 0: not told
    std::array<double, 3> scale = {}, offset = {};
    std::string coordinate_system;  // its name, where a record has one
    std::optional<int> epsg;        // its number in the registry of EPSG, where a record has one
    TimeType time_type = TimeType::unknown;
    bool has_time = false;
    int64_t records = 0, extended_records = 0;
    std::map<int, int64_t> returns;  // points by return number
    std::map<int, int64_t> classes;  // points by class
};

/// Nothing for a cloud that was not read from LAS, or whose place is forgotten. O(n).
std::optional<LasSummary> summarise_las(const PointCloud& cloud);

/// "ground": the name of a class [ASPRS LAS 1.4-R15, table 17]; "reserved" and "user defined" for those without.
std::string_view las_class_name(int number);

}  // namespace stipple::io
