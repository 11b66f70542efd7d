#include "stipple/data/class_names.h"

#include "stipple/core/error.h"
#include "stipple/core/json_walk.h"
#include "stipple/core/json_writer.h"
#include "stipple/io/byte_source.h"
#include "stipple/io/text.h"

namespace stipple::data {
namespace {

constexpr const char* kClassesKey = "stipple.classes";

std::vector<std::string> strings_of(const std::string& key, const std::string& json) {
    std::vector<std::string> strings;
    // walk_json wants an object.
    const bool valid = walk_json("{\"a\":" + json + "}", [&](std::string_view path, const JsonValue& value) {
        if (path != fmt::format("a/{}", strings.size()) || value.kind != JsonValue::Kind::string)
            throw Error(ErrorCode::bad_file, fmt::format("{} of the metadata is no list of names", key));
        strings.emplace_back(value.text);
    });
    if (!valid) throw Error(ErrorCode::bad_file, fmt::format("{} of the metadata is no JSON", key));
    return strings;
}

std::vector<std::string> names_of(const std::string& key, const char* one, const char* many,
                                  const std::map<std::string, std::string>& metadata, const std::string& names_path,
                                  int64_t count) {
    std::vector<std::string> names;
    std::string from = names_path;
    if (!names_path.empty()) {
        names = load_names(names_path);
    } else if (const auto found = metadata.find(key); found != metadata.end()) {
        names = strings_of(found->first, found->second);
        from = found->first;
    } else {
        for (int64_t i = 0; i < count; ++i) names.push_back(fmt::format("{} {}", one, i));
    }
    if (static_cast<int64_t>(names.size()) != count)
        throw Error(ErrorCode::bad_file,
                    fmt::format("{} names {} {}, the network has {}", from, names.size(), many, count));
    return names;
}

}  // namespace

std::vector<std::string> load_names(const std::string& path) {
    io::FileSource source(path);
    io::ByteReader reader(source);
    std::vector<std::string> lines;
    while (const auto line = reader.line())
        if (const std::string_view text = io::trimmed(*line); !text.empty()) lines.emplace_back(text);
    return lines;
}

std::vector<std::string> class_names(const std::map<std::string, std::string>& metadata, const std::string& names_path,
                                     int64_t count) {
    return names_of(kClassesKey, "class", "classes", metadata, names_path, count);
}

std::vector<std::string> class_names(const std::map<std::string, std::string>& metadata) {
    const auto found = metadata.find(kClassesKey);
    return found == metadata.end() ? std::vector<std::string>{} : strings_of(found->first, found->second);
}

void set_class_names(std::map<std::string, std::string>& metadata, const std::vector<std::string>& names) {
    JsonWriter json;
    json.begin_array();
    for (const std::string& name : names) json.value(name);
    metadata[kClassesKey] = json.end_array().text();
}

std::vector<std::string> part_names(const std::map<std::string, std::string>& metadata, const std::string& names_path,
                                    int64_t count) {
    return names_of("stipple.parts", "part", "parts", metadata, names_path, count);
}

}  // namespace stipple::data
