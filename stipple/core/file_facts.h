#pragma once
// FileFacts: what a file says about all of its points together, besides the points. Readers fill it, operations that
// keep points carry it along, and writers of formats that have a place for a fact write it back.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stipple {

/// What the attribute `time` counts (the GPS time type of LAS).
enum class TimeType { unknown, gps_week_seconds, gps_adjusted_standard };

/// What a LAS file says of itself, byte for byte, so that a LAS written from its points says it again.
struct LasFacts {
    std::string header;                 // the public header, whatever its version and size
    std::vector<std::string> records;   // variable length records, each with its header of 54 bytes
    std::string gap;                    // what stands between them and the points
    std::vector<std::string> extended;  // extended variable length records, each with its header of 60 bytes
    bool operator==(const LasFacts&) const = default;
};

struct FileFacts {
    /// One record of a coordinate system, byte for byte as the file has it.
    struct Record {
        std::string owner;  // LAS: "LASF_Projection"
        uint16_t id = 0;    // LAS: 2112 is WKT; 34735, 34736 and 34737 are GeoTIFF keys
        std::string description, bytes;
        bool operator==(const Record&) const = default;
    };
    /// The integers that a file stored: coordinate = integer * scale + offset.
    struct Grid {
        std::array<double, 3> scale = {}, offset = {};
        bool operator==(const Grid&) const = default;
    };

    std::vector<Record> coordinate_system;   // LAS
    std::optional<Grid> grid;                // LAS
    TimeType time_type = TimeType::unknown;  // LAS 1.2 and later
    bool synthetic_returns = false;          // LAS: return numbers were made up, not measured
    /// PCD: where the sensor stood, x y z, and its rotation, a quaternion w x y z.
    std::optional<std::array<double, 7>> viewpoint;

    /// LAS: shared, because every part of a file that is read in chunks has it. Without `coordinate_system` a writer
    /// leaves out the records of a coordinate system here too.
    std::shared_ptr<const LasFacts> las;

    bool operator==(const FileFacts& other) const {
        return coordinate_system == other.coordinate_system && grid == other.grid && time_type == other.time_type &&
               synthetic_returns == other.synthetic_returns && viewpoint == other.viewpoint &&
               (las == other.las || (las && other.las && *las == *other.las));
    }

    /// For points that were moved: drops what told their place (coordinate system, grid, viewpoint).
    void forget_place() {
        coordinate_system.clear();
        grid.reset();
        viewpoint.reset();
    }
};

}  // namespace stipple
