#pragma once
// Point records that are written as they were read: see kLasRecord.

#include "stipple/io/las/head.h"

namespace stipple::io::las {

/// The records of the cloud where they count, else null.
const Attribute* records_of(const PointCloud& cloud);

/// Throws Error{bad_argument} where a record is not at the position of its point: somebody has moved the points.
void require_records_of(const PointCloud& cloud, const Attribute& records);

/// The grid of the facts with what the options say.
Grid target_grid(const FileFacts& facts, const WriteOptions& options);

}  // namespace stipple::io::las
