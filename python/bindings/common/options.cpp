#include "python/bindings/common/options.h"

#include <fmt/format.h>

#include <cmath>

#include "stipple/core/nearest_name.h"

namespace stipple::python {
namespace {

bool is_whole(FieldType type) {
    return type == FieldType::int32 || type == FieldType::int64 || type == FieldType::uint64;
}
bool is_real(FieldType type) {
    return type == FieldType::float32 || type == FieldType::float64;
}

const char* python_type(const Field& field) {
    return field.type == FieldType::boolean ? "bool"
           : is_whole(field.type)           ? "int"
           : is_real(field.type)            ? "float"
                                            : "str";
}

[[noreturn]] void refuse_keyword_type(const Field& field, py::handle value) {
    throw py::type_error(
        fmt::format("{}: expected {}, got {}", field.name, python_type(field), Py_TYPE(value.ptr())->tp_name));
}

/// One value as the text that set_field() reads.
std::string text_of_value(const Field& field, py::handle value) {
    if (field.type == FieldType::boolean) {
        const int truth = PyBool_Check(value.ptr()) ? value.ptr() == Py_True : -1;
        if (truth < 0) refuse_keyword_type(field, value);
        return truth ? "true" : "false";
    }
    const bool is_text = PyUnicode_Check(value.ptr());
    if (is_whole(field.type) || is_real(field.type)) {
        if (is_text) {
            if (*field.zero) return value.cast<std::string>();
            refuse_keyword_type(field, value);
        }
        const py::object number = py::reinterpret_steal<py::object>(is_whole(field.type) ? PyNumber_Index(value.ptr())
                                                                                         : PyNumber_Float(value.ptr()));
        if (!number) {
            PyErr_Clear();
            refuse_keyword_type(field, value);
        }
        return py::str(number).cast<std::string>();
    }
    const py::object path = is_text ? py::reinterpret_borrow<py::object>(value)
                                    : py::reinterpret_steal<py::object>(PyOS_FSPath(value.ptr()));
    if (!path || !PyUnicode_Check(path.ptr())) {
        PyErr_Clear();
        refuse_keyword_type(field, value);
    }
    return path.cast<std::string>();
}

/// The fields that are set by their own names: those of unnamed structs within too.
template <class Visit>
void for_fields(const Fields& fields, const Visit& visit) {
    for (const Field& field : fields) {
        if (field.compute) continue;
        if (!field.nested)
            visit(field);
        else if (!*field.name)
            for_fields(field.nested(), visit);
    }
}

std::string default_of(const Field& field) {
    const std::vector<std::string> texts = texts_of(field, field.defaults());
    if (field.count == FieldCount::vector) return "()";
    if (texts.empty()) return "None";
    const std::string& text = texts.front();
    if (field.type == FieldType::boolean) return text == "true" ? "True" : "False";
    if (is_real(field.type) && text.find_first_of(".einf") == std::string::npos) return text + ".0";
    return is_whole(field.type) || is_real(field.type) ? text : "'" + text + "'";
}

}  // namespace

Keywords::Keywords(const py::kwargs& named, const char* function)
    : left_(py::reinterpret_steal<py::dict>(PyDict_Copy(named.ptr()))), function_(function) {}

py::object Keywords::take(const char* name) {
    if (!left_.contains(name)) return py::none();
    return left_.attr("pop")(name);
}

void Keywords::set(const Fields& fields, void* object) {
    std::vector<std::string> names;
    for_fields(fields, [&](const Field& field) {
        names.emplace_back(field.name);
        const py::object value = take(field.name);
        if (value.is_none()) return;
        std::vector<std::string> texts;
        if (field.count == FieldCount::vector || field.count == FieldCount::array)
            for (const py::handle item : value) texts.push_back(text_of_value(field, item));
        else
            texts.push_back(text_of_value(field, value));
        set_by_key(fields, object, field.name, texts);
    });
    for (const auto& [name, value] : left_) {
        const std::string text = py::str(name), near = nearest_name(text, names);
        throw py::type_error(fmt::format("{}() got an unexpected keyword argument '{}'{}", function_, text,
                                         near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
}

std::string documentation(const OptionsSignature& signature, const Fields& fields, const char* contract) {
    std::string keywords, options;
    for_fields(fields, [&](const Field& field) {
        const bool is_many = field.count == FieldCount::vector || field.count == FieldCount::array;
        keywords +=
            fmt::format(", {}: {} = {}", field.name, is_many ? "Sequence" : python_type(field), default_of(field));
        const std::string wanted = expectation(field);
        const bool says_range = !wanted.starts_with("a ") && field.type != FieldType::boolean;
        options +=
            fmt::format("    {} = {}  ({}{}{}{}{})\n", field.name, default_of(field), field.help,
                        *field.measure ? "; " : "", field.measure, says_range ? "; " : "", says_range ? wanted : "");
    });
    return fmt::format("{}({}, *{}{}{}) -> {}\n\n{}\n\nOptions:\n{}", signature.name, signature.arguments, keywords,
                       *signature.more ? ", " : "", signature.more, signature.result, contract, options);
}

}  // namespace stipple::python
