#include "stipple/models/common/config.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "stipple/core/error.h"
#include "stipple/core/nearest_name.h"
#include "stipple/core/quoted.h"

namespace stipple::models {

void read_config(std::string_view model, const Fields& fields, void* options, const Config& config) {
    const std::vector<std::string> names = keys_of(fields);
    for (const auto& [key, text] : config) {
        const auto found = std::find(names.begin(), names.end(), key);
        if (found == names.end()) {
            const std::string near = nearest_name(key, names);
            throw Error(ErrorCode::bad_config, fmt::format("{} has no option {}", model, in_quotes(key)),
                        near.empty() ? fmt::format("it has {}", fmt::join(names, ", "))
                                     : fmt::format("did you mean {}?", near));
        }
        try {
            set_by_key(fields, options, key, {&text, 1});
        } catch (const Error& error) {
            throw Error(ErrorCode::bad_config, fmt::format("{}: {}", model, error.message()), error.hint());
        }
    }
}

Config config_text(const Fields& fields, const void* options, const void* usual,
                   std::initializer_list<std::string_view> late) {
    Config config;
    for (const Field& field : fields) {
        const std::vector<std::string> texts = texts_of(field, options);
        const bool is_late = std::find(late.begin(), late.end(), field.name) != late.end();
        if (texts.empty() || (is_late && texts == texts_of(field, usual))) continue;
        config[field.name] = texts[0];
    }
    return config;
}

void check_options(std::string_view model, const Fields& fields, const void* options) {
    try {
        check_fields(fields, options);
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}", model, error.message()), error.hint());
    }
}

}  // namespace stipple::models
