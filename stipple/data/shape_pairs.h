#pragma once
// Which prediction belongs to which truth and mesh.

#include <string>
#include <vector>

namespace stipple::data {

struct ShapePair {
    std::string shape;                    // the name without folder and extension
    std::string prediction, truth, mesh;  // paths; no mesh when empty
};

/// One pair of files, or all pairs of two folders, by name without extension and sorted; `mesh` is a file for files, a
/// folder for folders, or empty. Only files that have the extension of a format count, and no hidden ones.
///
/// Throws Error{bad_file} for what is not there, a folder without clouds, and a prediction without truth, a truth
/// without prediction, a pair without mesh (the first of them by name, and how many); Error{bad_argument} for a folder
/// against a file, and for two files of one folder that would be the same shape.
std::vector<ShapePair> pair_shapes(const std::string& prediction, const std::string& truth, const std::string& mesh);

}  // namespace stipple::data
