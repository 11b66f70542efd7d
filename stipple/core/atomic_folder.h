#pragma once
// AtomicFolder: a folder appears under its name complete and on disk, or not at all.

#include <string>

#include "stipple/core/atomic_file.h"

namespace stipple {

/// Files go into a hidden folder beside the place; commit() flushes it and gives it its name. Without commit() it is
/// removed, and whatever stood under the name before is untouched. A killed process leaves at most ".NAME.PID.tmp".
class AtomicFolder {
public:
    /// Throws Error{cannot_write} when something is at `path` (and may not be replaced), when that is no folder, and
    /// when the folder around it is missing or read-only.
    AtomicFolder(const std::string& path, Overwrite overwrite);
    ~AtomicFolder();
    AtomicFolder(const AtomicFolder&) = delete;
    AtomicFolder& operator=(const AtomicFolder&) = delete;

    /// Where files are written until then.
    const std::string& path() const { return temporary_; }
    /// A folder in it, and those on the way, by its relative path; returns the path. Throws Error{cannot_write}.
    std::string make(const std::string& relative) const;

    /// What was there before goes after the new one is there.
    void commit();

private:
    std::string place_, temporary_;
    Overwrite overwrite_;
    bool is_done_ = false;
};

/// The checks of the constructor, with nothing made: call before a long computation.
void require_writable_folder(const std::string& path, Overwrite overwrite);

}  // namespace stipple
