#pragma once
// Configurations of models: the text that travels in a weights file, to and from options.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace stipple::models {

using Config = std::map<std::string, std::string>;

/// Values as text that reads back as the same.
std::string config_text(int64_t value);
std::string config_text(bool value);
std::string config_text(float value);

/// Takes a configuration apart key by key. A key that is absent leaves the value as it is; one that nobody asked for,
/// or whose text is no such value, is Error{bad_config} that names the model and the key.
class ConfigReader {
public:
    ConfigReader(std::string model, const Config& config) : model_(std::move(model)), config_(config) {}

    void read(const std::string& key, int64_t& value);
    void read(const std::string& key, bool& value);
    void read(const std::string& key, float& value);
    void read(const std::string& key, std::optional<float>& value);
    /// The position in `words`.
    void read(const std::string& key, const std::vector<std::string>& words, int64_t& value);
    /// The enumerator at that position.
    template <class Enum>
    requires std::is_enum_v<Enum>
    void read(const std::string& key, const std::vector<std::string>& words, Enum& value) {
        auto position = static_cast<int64_t>(value);
        read(key, words, position);
        value = static_cast<Enum>(position);
    }

    /// After the last read(): throws for a key that was not read, with the nearest one that was.
    void finish() const;

private:
    const std::string* find(const std::string& key);
    [[noreturn]] void refuse(const std::string& key, const std::string& text, const std::string& expected) const;

    std::string model_;
    const Config& config_;
    std::vector<std::string> known_;
};

}  // namespace stipple::models
