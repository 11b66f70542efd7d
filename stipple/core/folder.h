#pragma once
// Folders: making, listing and removing; names of files. std::filesystem ends the program when memory runs out in the
// middle of either.

#include <string>
#include <vector>

namespace stipple {

/// Names of everything in a folder, hidden entries too, sorted. Throws Error{bad_file}.
std::vector<std::string> list_folder(const std::string& path);

/// Makes a folder, where there is none. One level: a wrong path is a mistake more often than a wish. Throws
/// Error{cannot_write}.
void make_folder(const std::string& path);

/// False where nothing is.
bool is_folder(const std::string& path);

/// The file's name without folder and last extension: "a/b/scan.las" -> "scan".
std::string stem_of(const std::string& path);

/// Removes a file, a link, or a folder with all that is in it; links are not followed. What is not there is no error.
/// Returns 0 or the errno of the first entry that would not go.
int remove_tree(const std::string& path) noexcept;

}  // namespace stipple
