#pragma once
// Files that come with a program: beside it, in share/stipple of its prefix, or in the checkout that it was built in.

#include <string>
#include <vector>

namespace stipple {

/// Of the running program; "" where the system does not tell.
std::string program_path();

/// False where nothing is, and for folders.
bool is_file(const std::string& path);

/// The folders that are searched for a kind of file ("weights"), first to last: those that the environment variable
/// names (several, with ':' between them), share/stipple/KIND of the prefix that the program is installed in, and, for
/// a program in a build folder of a checkout, the checkout's KIND.
std::vector<std::string> shared_folders(const std::string& kind, const char* variable);

/// For hosts that embed the library, as Python does, and are no program of it: KIND below this folder is searched after
/// the folders of the environment variable, and, for a folder CHECKOUT/build/PRESET/python/stipple, the checkout's
/// KIND. Call it before anything is searched.
void add_shared_root(const std::string& folder);

/// Existing paths and names with a folder stay as they are; others are searched in `folders`, with and without
/// `extension`. What is not found comes back unchanged, for its reader to say so.
std::string find_shared(const std::vector<std::string>& folders, const std::string& path_or_name,
                        const std::string& extension);

/// Names that find_shared() finds, without extension, sorted.
std::vector<std::string> list_shared(const std::vector<std::string>& folders, const std::string& extension);

}  // namespace stipple
