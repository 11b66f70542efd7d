#pragma once
// Photographs without cameras: the program colmap finds them.

#include <functional>
#include <string>
#include <vector>

namespace stipple::radiance {

/// FOLDER/images where that is a folder, else FOLDER.
std::string picture_folder(const std::string& folder);

/// Names of the PNG and JPEG files, by extension, in a folder and those below it (hidden ones and links to folders
/// excepted), relative to it, sorted.
std::vector<std::string> list_pictures(const std::string& folder);

/// Runs colmap's feature_extractor, exhaustive_matcher and mapper on the pictures; the models lie in FOLDER/sparse, its
/// features in FOLDER/colmap.db, what it prints in FOLDER/colmap.log. `report` gets a line for each step; may be empty.
/// On the GPU where colmap was built with CUDA. Throws Error{bad_file} with how to install it and what to type where
/// there is no such program in PATH, where a step fails (with the last line that it printed), and where it finds no
/// model; Error{cannot_write} where the folder cannot be written.
void run_colmap(const std::string& folder, const std::function<void(const std::string& line)>& report);

}  // namespace stipple::radiance
