#pragma once
// --profile: what each layer took, as a table, as JSON and as a trace.

#include "stipple/cli/command.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/profile.h"

namespace stipple::cli {

/// --profile FILE.json of a command that runs a network; empty: not wanted.
void add_profile(Arguments& app, std::string& path);
/// Throws Error{bad_argument} unless the path ends with .json, Error{cannot_write} as AtomicFile; an empty one is none.
void require_profile(const std::string& path, const Common& common);

/// A line for each row. For people ("") names are indented below their stage; in other styles, which programs read, the
/// stage has a column of its own: "step/forward". Columns of the GPU and of memory where there is any.
Table profile_table(const Profile& profile, const std::string& style);
/// An array of objects: name, stage, calls, cpu_total_ms, cpu_self_ms, cpu_average_ms, cpu_percent, the same of the GPU
/// where there is one, bytes, peak_bytes.
Json profile_json(const Profile& profile);

/// Writes the trace, unless it is a dry run. The table comes below the text of the result, unless that is a single
/// table for programs (--table csv or json); `profile` in the fields. Nothing for an empty path.
void report_profile(const Profile& profile, const std::string& path, Overwrite overwrite, const Common& common,
                    Result& result);

}  // namespace stipple::cli
