#pragma once
// manifest.json of a checkpoint: its text and its reading. Internal to checkpoint.cpp.

#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/checkpoint.h"
#include "stipple/core/error.h"

namespace stipple::manifest {

inline constexpr const char* kName = "manifest.json";

/// A sound manifest of a format newer than this program's: not damage.
class NewerVersion : public Error {
public:
    using Error::Error;
};

/// The text. Its last line is a CRC-32 of everything before that line, so that a flipped bit in the manifest is found
/// as surely as one in a file. Throws Error{bad_argument} for what JSON cannot hold.
std::string format(const CheckpointInfo& info, const std::vector<Checkpoint::File>& files);

/// Reads `directory`/manifest.json. Throws Error{bad_file} when it is damaged, NewerVersion when it is not.
Checkpoint read(const std::string& directory);

/// Every file has the size of the manifest; cheap, no content is read. Throws Error{bad_file}.
void check_sizes(const Checkpoint& checkpoint);

/// Every file has the checksum of the manifest. Throws Error{bad_file}.
void check_contents(const Checkpoint& checkpoint);

/// A plain name for a file of a checkpoint.
bool is_file_name(std::string_view name);

}  // namespace stipple::manifest
