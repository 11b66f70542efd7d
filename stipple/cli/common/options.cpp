#include "stipple/cli/common/options.h"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "stipple/core/nearest_name.h"

namespace stipple::cli {
namespace {

/// What other programs call the same thing.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"align", "register"},
    {"cat", "merge"},
    {"chamfer", "metrics"},
    {"clip", "crop"},
    {"cluster", "clusters"},
    {"concat", "merge"},
    {"cut", "crop"},
    {"dbscan", "clusters"},
    {"decimate", "sample"},
    {"denoise", "clean"},
    {"densify", "upsample"},
    {"downsample", "sample"},
    {"draw", "picture"},
    {"header", "info"},
    {"icp", "register"},
    {"join", "merge"},
    {"outliers", "clean"},
    {"pipe", "run"},
    {"pipeline", "run"},
    {"poisson", "mesh surface"},
    {"ransac", "planes"},
    {"rebuild", "reconstruct"},
    {"render", "picture"},
    {"rotate", "transform"},
    {"simplify", "mesh simplify"},
    {"subsample", "sample"},
    {"thin", "sample"},
    {"tile", "split"},
    {"translate", "transform"},
    {"view", "picture"},
    {"voxel", "sample"},
    {"voxelise", "sample"},
    {"voxelize", "sample"},
};

/// 1e6 and 2.5e3 become the whole numbers that they are.
std::string write_out(std::string& text) {
    if (text.find_first_of("eE") == std::string::npos) return "";
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return "";
    if (std::abs(value) < 9e15 && value == std::floor(value)) text = std::to_string(static_cast<int64_t>(value));
    return "";
}

CLI::Option* whole(CLI::Option* option) {
    option->transform(CLI::Validator(write_out, ""));
    return option;
}

bool has_value(const std::string& value) {
    return !value.empty();
}
template <class Number>
bool has_value(Number value) {
    return !std::isnan(static_cast<double>(value));
}

/// What the variable holds is the default; one that holds nothing (no text, NaN) has none.
template <class Value>
Option with_default(CLI::Option* option, const Value& value) {
    if (has_value(value)) option->default_str(fmt::format("{}", value));
    return Option(option);
}
template <class Value>
Option with_default(CLI::Option* option, const std::vector<Value>& values) {
    if (!values.empty()) option->default_str(fmt::format("{}", fmt::join(values, " ")));
    return Option(option);
}

/// CLI11's formatter, but a default is shown behind any words, "--color auto|always|never=auto", and not what a flag
/// with a no in its name does: "--no-legend{false}".
class HelpFormatter : public CLI::Formatter {
public:
    std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
        std::string text = Formatter::make_option_name(option, is_positional);
        if (const size_t at = text.find("{false}"); at != std::string::npos) text.erase(at, 7);
        return text;
    }
    std::string make_option_opts(const CLI::Option* option) const override {
        std::string text = Formatter::make_option_opts(option);
        if (!option->get_option_text().empty() && !option->get_default_str().empty())
            text += "=" + option->get_default_str();
        return text;
    }
};

}  // namespace

// ---- Option

Option Option::one_of(const std::vector<std::string>& words) const {
    option_->check(CLI::IsMember(words));
    return *this;
}

Option Option::offers(const std::vector<std::string>& words) const {
    option_->type_name(fmt::format("TEXT:{{{}}}", fmt::join(words, ",")));
    return *this;
}

Option Option::between(int least, int most) const {
    option_->check(CLI::Range(least, most));
    return *this;
}

Option Option::from_zero() const {
    option_->check(CLI::Validator(
        [](const std::string& text) {
            return text.find('-') == std::string::npos ? std::string()
                                                       : fmt::format("expected a whole number from 0, got {}", text);
        },
        ""));
    return *this;
}

Option Option::text(const std::string& shown) const {
    option_->option_text(shown);
    return *this;
}

Option Option::help(const std::string& words) const {
    option_->description(words);
    return *this;
}

Option Option::no_default() const {
    option_->default_str("");
    return *this;
}

Option Option::count(int least, int most) const {
    option_->expected(least, most);
    return *this;
}

Option Option::separated_by(char separator) const {
    option_->delimiter(separator);
    std::string shown = option_->get_default_str();
    std::replace(shown.begin(), shown.end(), ' ', separator);
    option_->default_str(shown);
    return *this;
}

Option Option::one_word() const {
    option_->allow_extra_args(false);
    return *this;
}

bool Option::given() const {
    return option_->count() > 0;
}

std::string Option::name() const {
    return option_->get_lnames().empty() ? option_->get_name() : option_->get_lnames()[0];
}

std::vector<std::string> Option::switches() const {
    std::vector<std::string> names;
    for (const std::string& name : option_->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option_->get_lnames()) names.push_back("--" + name);
    return names;
}

std::string Option::description() const {
    return option_->get_description();
}

std::vector<std::string> Option::words() const {
    // CLI11 keeps them in the name of the type: "TEXT:{z,y}".
    const std::string type = option_->get_type_name();
    const size_t begin = type.find('{'), end = type.find('}');
    std::vector<std::string> words;
    if (begin == std::string::npos || end == std::string::npos) return words;
    for (size_t at = begin + 1; at < end;) {
        const size_t next = std::min(type.find(',', at), end);
        words.push_back(type.substr(at, next - at));
        at = next + 1;
    }
    return words;
}

bool Option::is_positional() const {
    return option_->get_positional();
}

bool Option::is_flag() const {
    return option_->get_expected_max() == 0;
}

bool Option::is_number() const {
    const std::string type = option_->get_type_name();
    return type == "INT" || type == "UINT" || type == "FLOAT";
}

std::string Option::expected() const {
    std::string wanted = option_->get_type_name();
    if (is_flag()) wanted = "true or false";
    if (wanted == "INT" || wanted == "UINT") wanted = wanted == "INT" ? "a whole number" : "a whole number from 0";
    if (wanted == "FLOAT") wanted = "a number";
    if (option_->get_expected_min() > 1)
        wanted = fmt::format("{} values, each {}", option_->get_expected_min(), wanted);
    return wanted == "TEXT" ? "one value" : wanted;
}

std::vector<std::string> Option::values() const {
    return given() ? option_->results() : std::vector<std::string>{};
}

std::string Option::default_value() const {
    return option_->get_default_str();
}

bool Option::takes_many() const {
    return option_->get_expected_max() != 1;
}

bool Option::set(const std::vector<std::string>& values) const {
    try {
        for (const std::string& value : values) option_->add_result(value);
        option_->run_callback();
        return true;
    } catch (const CLI::Error&) {  // CLI11's own words speak of command lines
        return false;
    }
}

void Option::mark_required() const {
    option_->required();
}

// ---- Arguments: declaration

Arguments::Arguments(const std::string& description, const std::string& program, const std::string& version)
    : owned_(std::make_unique<CLI::App>(description, program)), app_(owned_.get()), version_(version) {
    app_->set_version_flag("-V,--version", fmt::format("{} {}", program, version));
    app_->require_subcommand(0, 1);
    app_->fallthrough();
    app_->formatter(std::make_shared<HelpFormatter>());  // commands take over what their group has
}

Arguments::Arguments(CLI::App* app, Arguments* parent) : app_(app), parent_(parent) {}

Arguments::~Arguments() = default;

Arguments& Arguments::command(const std::string& name, const std::string& description) {
    CLI::App* below = app_->add_subcommand(name, description);
    below->fallthrough();                         // common options may follow it
    if (parent_) app_->require_subcommand(0, 1);  // a group
    commands_.push_back(std::unique_ptr<Arguments>(new Arguments(below, this)));
    return *commands_.back();
}

Option Arguments::option(const std::string& name, std::string& value, const std::string& help) {
    return with_default(app_->add_option(name, value, help), value);
}

Option Arguments::option(const std::string& name, int& value, const std::string& help) {
    return with_default(whole(app_->add_option(name, value, help)), value);
}

Option Arguments::option(const std::string& name, int64_t& value, const std::string& help) {
    return with_default(whole(app_->add_option(name, value, help)), value);
}

Option Arguments::option(const std::string& name, uint64_t& value, const std::string& help) {
    return with_default(whole(app_->add_option(name, value, help)), value);
}

Option Arguments::option(const std::string& name, float& value, const std::string& help) {
    return with_default(app_->add_option(name, value, help), value);
}

Option Arguments::option(const std::string& name, double& value, const std::string& help) {
    return with_default(app_->add_option(name, value, help), value);
}

Option Arguments::option(const std::string& name, std::vector<std::string>& values, const std::string& help) {
    return with_default(app_->add_option(name, values, help), values);
}

Option Arguments::option(const std::string& name, std::vector<int64_t>& values, const std::string& help) {
    return with_default(whole(app_->add_option(name, values, help)), values);
}

Option Arguments::option(const std::string& name, std::vector<double>& values, const std::string& help) {
    return with_default(app_->add_option(name, values, help), values);
}

Option Arguments::flag(const std::string& name, bool& value, const std::string& help) {
    return Option(app_->add_flag(name, value, help));
}

Option Arguments::bind(const Field& field, void* object) {
    const std::string name = field.letter ? fmt::format("-{},{}", field.letter, as_option(field)) : as_option(field);
    void* at = field.address(object);
    const auto typed = [&](auto* value) { return option(name, *value, field.help); };
    Option made;
    if (field.count == FieldCount::one && field.known.empty() && !*field.zero) switch (field.type) {
            case FieldType::boolean: {
                bool& value = *static_cast<bool*>(at);
                return flag(value ? "!--no-" + as_option(field).substr(2) : name, value, field.help);
            }
            case FieldType::int32: made = typed(static_cast<int*>(at)); break;
            case FieldType::int64: made = typed(static_cast<int64_t*>(at)); break;
            case FieldType::uint64: made = typed(static_cast<uint64_t*>(at)).from_zero(); break;
            case FieldType::float32: made = typed(static_cast<float*>(at)); break;
            case FieldType::float64: made = typed(static_cast<double*>(at)); break;
            case FieldType::text: made = typed(static_cast<std::string*>(at)); break;
            default: break;
        }
    if (field.count == FieldCount::vector && field.type == FieldType::text)
        made = typed(static_cast<std::vector<std::string>*>(at));
    if (field.count == FieldCount::vector && field.type == FieldType::int64)
        made = typed(static_cast<std::vector<int64_t>*>(at));
    if (field.count == FieldCount::vector && field.type == FieldType::float64)
        made = typed(static_cast<std::vector<double>*>(at));
    if (!made.is_declared()) {
        const auto set = [&field, object, spelled = as_option(field)](const std::vector<std::string>& values) {
            try {
                set_field(field, object, values, spelled);
            } catch (const Error& error) {
                throw CLI::ValidationError(error.message(), CLI::ExitCodes::ValidationError);
            }
        };
        CLI::Option* option = app_->add_option_function<std::vector<std::string>>(name, set, field.help);
        option->default_str(fmt::format("{}", fmt::join(texts_of(field, object), " ")));
        const bool is_number = field.type != FieldType::text && field.known.empty();
        option->type_name(is_number ? "FLOAT" : "TEXT");
        if (field.count != FieldCount::vector) option->expected(field.size);
        made = Option(option);
    }
    if (!field.known.empty()) {
        const std::vector<std::string> words(field.known.begin(), field.known.end());
        made.offers(words).text(fmt::format("{}", fmt::join(words, "|")));
    }
    if (*field.placeholder) made.text(field.placeholder);
    if (!field.shows_default) made.no_default();
    bound_.push_back({&field, object, made});
    return made;
}

void Arguments::watch(const Fields& fields, void* object) {
    const std::pair<const Fields*, const void*> table{&fields, object};
    if (std::find(tables_.begin(), tables_.end(), table) == tables_.end()) tables_.push_back(table);
}

void Arguments::add(const Fields& fields, void* object, std::initializer_list<const char*> names) {
    watch(fields, object);
    for (const char* name : names) add(fields, object, name);
    if (names.size() > 0) return;
    for (const Field& field : fields)
        if (field.nested)
            add(field.nested(), field.address(object));
        else
            bind(field, object);
}

Option Arguments::add(const Fields& fields, void* object, const char* name) {
    watch(fields, object);
    const auto [field, of] = find_field(fields, object, name);
    STIPPLE_ASSERT(field);
    return bind(*field, of);
}

void Arguments::check() const {
    if (parent_) parent_->check();
    const auto is_left_out = [&](const Field& field, const void* object) {
        const auto is_of_it = [&](const Bound& bound) { return bound.field == &field && bound.object == object; };
        const auto found = std::find_if(bound_.begin(), bound_.end(), is_of_it);
        return !field.shows_default && found != bound_.end() && !found->option.given();
    };
    for (const auto& [fields, object] : tables_) check_fields(*fields, object, as_option, is_left_out);
}

void Arguments::footer(const std::string& text) {
    app_->footer(text);
}

std::string Arguments::footer() const {
    return app_->get_footer();
}

// ---- Arguments: what the command line said

std::optional<Arguments::End> Arguments::parse(int argc, char** argv, const std::vector<Option>& required) {
    try {
        app_->parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) {
            const bool extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
            return End{"", usage_error(error.what(), extras)};
        }
        if (error.get_name() == "CallForVersion") return End{std::string(error.what()) + "\n", {}};
    }
    for (const Option& option : required) option.mark_required();
    return End{named().help(), {}};
}

/// CLI11's words, made to name what was meant; `extras`: they are about arguments that are left.
Error Arguments::usage_error(const std::string& words, bool extras) {
    const Arguments& command = named();
    std::string message = words, near, synonym;
    const std::vector<std::string> rest = app_->remaining(true);
    if (extras && !rest.empty()) {
        std::vector<std::string> names;
        if (rest[0].size() > 1 && rest[0][0] == '-') {
            message = fmt::format("unknown option {}", rest[0].substr(0, rest[0].find('=')));
            for (const Arguments* section = &command; section; section = section->parent_)
                for (const CLI::Option* option : section->app_->get_options())
                    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        } else if (!command.commands_.empty()) {
            message = fmt::format("unknown {} command {}", command.path(' '), rest[0]);
            if (&command == this) message = fmt::format("unknown command {}", rest[0]);
            for (const auto& known : command.commands_) names.push_back(known->app_->get_name());
            for (const auto& [word, meant] : kSynonyms)
                if (&command == this && rest[0] == word) synonym = meant;
        } else {
            message = fmt::format("unexpected argument {}", rest[0]);
        }
        near = synonym.empty() ? nearest_name(rest[0].substr(0, rest[0].find('=')), names) : synonym;
    }
    if (constexpr std::string_view kWords = "Could not convert: "; message.rfind(kWords, 0) == 0)
        message = message.substr(kWords.size()) + ": not a valid value";
    if (const size_t at = message.find(" required "); at != std::string::npos && message.find(" missing") > at)
        message = message.substr(0, message.find(':')) + ": a value is missing";
    return Error(ErrorCode::bad_argument, message,
                 near.empty() ? fmt::format("see: {}", command.help_call())
                              : fmt::format("did you mean {}? See: {}", near, command.help_call()));
}

Arguments& Arguments::named() {
    for (const auto& below : commands_)
        if (below->is_named()) return below->named();
    return *this;
}

bool Arguments::is_named() const {
    return app_->parsed();
}

std::string Arguments::help() const {
    std::string above;
    if (parent_)
        above = parent_->parent_ ? root().app_->get_name() + " " + parent_->path(' ') : root().app_->get_name();
    std::string text = app_->help(above);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text + "\n";
}

std::string Arguments::name() const {
    return app_->get_name();
}

std::string Arguments::description() const {
    return app_->get_description();
}

std::string Arguments::version() const {
    return root().version_;
}

std::string Arguments::path(char separator) const {
    if (!parent_) return "";
    const std::string above = parent_->path(separator);
    return above.empty() ? app_->get_name() : above + separator + app_->get_name();
}

std::string Arguments::help_call() const {
    return fmt::format("{}{}{} --help", root().app_->get_name(), parent_ ? " " : "", path(' '));
}

std::vector<Option> Arguments::options() const {
    std::vector<Option> options;
    for (CLI::Option* option : app_->get_options()) options.emplace_back(option);
    return options;
}

}  // namespace stipple::cli
