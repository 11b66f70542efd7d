#include "stipple/core/json_events.h"

#include <nlohmann/json.hpp>

#include "stipple/core/error.h"
#include "stipple/core/quoted.h"

namespace stipple {
namespace {

class Adapter : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit Adapter(JsonEvents& events) : events_(events) {}

    bool null() override { return events_.null(); }
    bool boolean(bool value) override { return events_.boolean(value); }
    bool number_integer(number_integer_t value) override { return events_.negative(value); }
    bool number_unsigned(number_unsigned_t value) override { return events_.whole(value); }
    bool number_float(number_float_t value, const string_t&) override { return events_.real(value); }
    bool string(string_t& text) override { return events_.string(text); }
    bool binary(binary_t&) override { return false; }
    bool start_object(size_t) override { return events_.start_object(); }
    bool key(string_t& name) override { return events_.key(name); }
    bool end_object() override { return events_.end_object(); }
    bool start_array(size_t) override { return events_.start_array(); }
    bool end_array() override { return events_.end_array(); }
    bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
        return events_.error(position);
    }

private:
    JsonEvents& events_;
};

}  // namespace

bool parse_json(std::string_view text, JsonEvents& events) {
    Adapter adapter(events);
    return nlohmann::json::sax_parse(text.begin(), text.end(), &adapter);
}

std::string json_string(std::string_view text) {
    try {
        return nlohmann::json(text).dump();
    } catch (const nlohmann::json::exception&) {
        throw Error(ErrorCode::bad_argument, fmt::format("{} is not UTF-8", in_quotes(text)));
    }
}

}  // namespace stipple
