#pragma once
// Names of the classes and parts of a network.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stipple::data {

/// The lines of a text file that are not empty, without blanks around them. Throws Error{bad_file}.
std::vector<std::string> load_names(const std::string& path);

/// Names of `count` classes: lines of the file at `names_path`, else "stipple.classes" of the metadata (a JSON array),
/// else "class 0" and so on. Throws Error{bad_file} when there are more or fewer.
std::vector<std::string> class_names(const std::map<std::string, std::string>& metadata, const std::string& names_path,
                                     int64_t count);

/// Those of the metadata, as many as there are; none where it has none. Throws Error{bad_file} when it is no list.
std::vector<std::string> class_names(const std::map<std::string, std::string>& metadata);
/// Puts them there.
void set_class_names(std::map<std::string, std::string>& metadata, const std::vector<std::string>& names);

/// Names of `count` parts, likewise; of the metadata "stipple.parts", else "part 0" and so on.
std::vector<std::string> part_names(const std::map<std::string, std::string>& metadata, const std::string& names_path,
                                    int64_t count);

}  // namespace stipple::data
