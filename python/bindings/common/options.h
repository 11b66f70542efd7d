#pragma once
// Functions whose keyword arguments are the fields of an options struct (core/fields.h): names, defaults, ranges and
// help come from the table, into the call, its docstring and the stub.
//
//   Record<UpsampledRecord> upsample(const UpsamplerObject& upsampler, const py::object& cloud, const py::kwargs&
//   named) {
//       tasks::UpsampleOptions options;
//       Keywords keywords(named, "upsample");
//       options.seed = keywords.take("seed", options.seed);
//       keywords.set(tasks::upsample_fields(), &options);
//       ...
//   }
//   def_with_options(module, {.name = "upsample", .arguments = "upsampler: Upsampler, cloud: object",
//                             .more = "seed: int = 0", .result = "Upsampled"},
//                    tasks::upsample_fields(), &upsample, doc::tasks::upsample, py::arg("upsampler"),
//                    py::arg("cloud"));

#include <string>

#include "python/bindings/common/bind.h"
#include "stipple/core/fields.h"

namespace stipple::python {

/// The keyword arguments of one call. Each is used once; what is left in the end is refused.
class Keywords {
public:
    Keywords(const py::kwargs& named, const char* function);

    /// The argument of this name, or None.
    py::object take(const char* name);
    template <class T>
    T take(const char* name, T otherwise) {
        const py::object given = take(name);
        return given.is_none() ? otherwise : given.cast<T>();
    }
    /// Sets the fields that are given; None leaves a default. Throws TypeError for names that are no fields, with the
    /// nearest one, and for values of another type, Error{bad_argument} for values out of range.
    void set(const Fields& fields, void* object);

private:
    py::dict left_;
    const char* function_;
};

/// A signature, but for the fields.
struct OptionsSignature {
    const char* name;
    const char* arguments;  // "upsampler: Upsampler, cloud: object"
    const char* more = "";  // keywords that are no fields: "seed: int = 0"
    const char* result;     // "Upsampled"
};
/// The first line is the signature, as pybind11 writes it; then the contract; then each field.
std::string documentation(const OptionsSignature& signature, const Fields& fields, const char* contract);

template <class Function, class... Extra>
void def_with_options(py::module_& module, const OptionsSignature& signature, const Fields& fields, Function function,
                      const char* contract, const Extra&... extra) {
    py::options plain;
    plain.disable_function_signatures();
    module.def(signature.name, function, extra..., documentation(signature, fields, contract).c_str());
}

}  // namespace stipple::python
