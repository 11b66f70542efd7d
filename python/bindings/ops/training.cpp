// stipple.ops: what a step of training is made of. Arrays are written in place, as in C++.

#include "python/bindings/ops/common.h"
#include "stipple/ops/dropout.h"
#include "stipple/ops/gradient_norm.h"
#include "stipple/ops/optimizer_update.h"
#include "stipple/ops/update_rules.h"

namespace stipple::python {
namespace {

ArrayResult dropout(const ArrayLike& x_, float rate, uint64_t key, const ArrayLike& step_, int64_t first) {
    Call call;
    const ops::MatrixView x = call.matrix(x_, "x");
    const auto step = call.array<int64_t, 1>(step_, "step");
    STIPPLE_REQUIRE(step.size(0) == 1, "step: {} numbers; wanted is one", step.size(0));
    const int64_t shape[] = {x.rows, x.columns};
    Buffer out = call.allocate(x.dtype, shape);
    call.run([&](Stream stream) { ops::dropout(x, rate, key, step.data(), first, out.data(), stream); });
    return call.give(std::move(out), x.dtype, shape);
}

ArrayResult gradient_norm(const py::sequence& gradients) {
    Call call;
    std::vector<ops::GradientTensor> tensors;
    for (py::handle item : gradients) {
        const ArrayInfo info = call.any(py::reinterpret_borrow<py::object>(item), "gradients");
        tensors.push_back({info.data, info.dtype, info.elements()});
    }
    auto norm = call.make<float, 1>({1});
    call.run([&](Stream stream) { ops::gradient_norm(tensors, norm.view(), stream); });
    return call.give(std::move(norm));
}

void update_rules(const ArrayLike& rates_, const ArrayLike& first_step_, const ArrayLike& gradient_norm_,
                  const ArrayLike& loss_, const ArrayLike& state_, const ArrayLike& control_, const ArrayLike& log_,
                  double clip, double average_decay, double beta1, double beta2, bool has_loss_scale,
                  double least_scale, double most_scale, int64_t scale_good_steps) {
    const ops::UpdateRules rules{clip,           average_decay, beta1,      beta2,
                                 has_loss_scale, least_scale,   most_scale, scale_good_steps};
    Call call;
    const auto rates = call.array<double, 1>(rates_, "rates"),
               first_step = call.array<double, 1>(first_step_, "first_step");
    const auto norm = call.array<float, 1>(gradient_norm_, "gradient_norm");
    const auto loss = call.array<double, 1>(loss_, "loss");
    const auto state = call.writable<double, 1>(state_, "state"),
               control = call.writable<double, 1>(control_, "control");
    const auto log = log_.is_none() ? View<double, 2>(nullptr, {0, ops::LogSlot::count}, call.device())
                                    : call.writable<double, 2>(log_, "log");
    call.run(
        [&](Stream stream) { ops::update_rules(rules, rates, first_step, norm, loss, state, control, log, stream); });
}

/// An array of a parameter's dict, which must be as long as the others; empty when it is not there.
ArrayInfo member(Call& call, const py::dict& parameter, const char* key, bool is_wanted, bool is_written,
                 int64_t count = -1) {
    if (!parameter.contains(key) || py::object(parameter[key]).is_none()) {
        STIPPLE_REQUIRE(!is_wanted, "tensors: a dict without \"{}\"", key);
        return {};
    }
    const py::object array = parameter[key];
    const ArrayInfo info = is_written ? call.any_writable(array, key) : call.any(array, key);
    STIPPLE_REQUIRE(count < 0 || info.elements() == count, "{}: {} numbers, while the value has {}", key,
                    info.elements(), count);
    return info;
}

float* floats(const ArrayInfo& info, const char* key) {
    if (info.data && info.dtype != DType::f32)
        throw py::type_error(fmt::format("{}: an array of {}; wanted is float32", key, name_of(info.dtype)));
    return static_cast<float*>(info.data);
}

void require_type(const ArrayInfo& info, DType wanted, const char* key) {
    if (info.data && info.dtype != wanted)
        throw py::type_error(fmt::format("{}: an array of {}; wanted is {}, the type of what is stepped", key,
                                         name_of(info.dtype), name_of(wanted)));
}

void optimizer_update(const py::list& tensors_, const ArrayLike& control_, std::string_view kind, double weight_decay,
                      double momentum, double beta1, double beta2, double eps) {
    constexpr Word<ops::UpdateKind> kKinds[] = {
        {"sgd", ops::UpdateKind::sgd}, {"adam", ops::UpdateKind::adam}, {"adamw", ops::UpdateKind::adamw}};
    const ops::UpdateOptions options{choice(kind, "kind", kKinds), weight_decay, momentum, beta1, beta2, eps};
    Call call;
    const auto control = call.array<double, 1>(control_, "control");
    std::vector<ops::UpdatedTensor> tensors;
    for (py::handle item : tensors_) {
        const auto parameter = item.cast<py::dict>();
        const ArrayInfo value = member(call, parameter, "value", true, true);
        const int64_t n = value.elements();
        const ArrayInfo gradient = member(call, parameter, "gradient", true, false, n);
        const ArrayInfo first = member(call, parameter, "first", true, true, n);
        const ArrayInfo second = member(call, parameter, "second", options.kind != ops::UpdateKind::sgd, true, n);
        const ArrayInfo master = member(call, parameter, "master", false, true, n);
        const DType stepped = master.data ? DType::f32 : value.dtype;
        require_type(first, stepped, "first");
        require_type(second, stepped, "second");
        tensors.push_back({value.data, value.dtype, gradient.data, gradient.dtype, first.data, second.data,
                           floats(master, "master"), n});
    }
    call.run([&](Stream stream) { ops::optimizer_update(tensors, options, control, stream); });
}

void average_update(const py::list& tensors_, const ArrayLike& control_) {
    Call call;
    const auto control = call.array<double, 1>(control_, "control");
    std::vector<ops::AveragedTensor> tensors;
    for (py::handle item : tensors_) {
        const auto entry = item.cast<py::dict>();
        const ArrayInfo value = member(call, entry, "value", true, false);
        const ArrayInfo average = member(call, entry, "average", true, true, value.elements());
        tensors.push_back({value.data, value.dtype, floats(average, "average"), value.elements()});
    }
    call.run([&](Stream stream) { ops::average_update(tensors, control, stream); });
}

void restore_skipped(const py::list& tensors_, const ArrayLike& control_) {
    Call call;
    const auto control = call.array<double, 1>(control_, "control");
    std::vector<ops::RestoredTensor> tensors;
    for (py::handle item : tensors_) {
        const auto entry = item.cast<py::dict>();
        const ArrayInfo value = member(call, entry, "value", true, true);
        const ArrayInfo saved = member(call, entry, "saved", true, false, value.elements());
        require_type(saved, value.dtype, "saved");
        tensors.push_back({value.data, saved.data, value.dtype, value.elements()});
    }
    call.run([&](Stream stream) { ops::restore_skipped(tensors, control, stream); });
}

struct Slot {
    const char* name;
    int at;
};
template <size_t N>
void add_slots(py::module_& ops, const char* name, const Slot (&slots)[N]) {
    py::dict places;
    for (const Slot& slot : slots) places[slot.name] = slot.at;
    ops.attr(name) = py::module_::import("types").attr("SimpleNamespace")(**places);
}

}  // namespace

void bind_training(py::module_& ops) {
    const auto none = py::none();
    using Step = ops::StepSlot;
    using Control = ops::ControlSlot;
    using Log = ops::LogSlot;
    add_slots(ops, "StepSlot",
              {{"steps", Step::steps},
               {"updates", Step::updates},
               {"average_updates", Step::average_updates},
               {"loss_scale", Step::loss_scale},
               {"good_steps", Step::good_steps},
               {"skipped", Step::skipped},
               {"skipped_in_a_row", Step::skipped_in_a_row},
               {"count", Step::count}});
    add_slots(ops, "ControlSlot",
              {{"is_made", Control::is_made},
               {"rate", Control::rate},
               {"gradient_factor", Control::gradient_factor},
               {"correction1", Control::correction1},
               {"correction2", Control::correction2},
               {"average_decay", Control::average_decay},
               {"count", Control::count}});
    add_slots(ops, "LogSlot",
              {{"loss", Log::loss},
               {"gradient_norm", Log::gradient_norm},
               {"is_made", Log::is_made},
               {"loss_scale", Log::loss_scale},
               {"count", Log::count}});
    const ops::UpdateRules rules;
    ops.def("dropout", &dropout, py::arg("x"), py::arg("rate"), py::arg("key"), py::arg("step"), py::arg("first") = 0,
            doc::ops::dropout);
    ops.def("gradient_norm", &gradient_norm, py::arg("gradients"), doc::ops::gradient_norm);
    ops.def("update_rules", &update_rules, py::arg("rates"), py::arg("first_step"), py::arg("gradient_norm"),
            py::arg("loss"), py::arg("state"), py::arg("control"), py::arg("log") = none, py::kw_only(),
            py::arg("clip") = rules.clip, py::arg("average_decay") = rules.average_decay,
            py::arg("beta1") = rules.beta1, py::arg("beta2") = rules.beta2,
            py::arg("has_loss_scale") = rules.has_loss_scale, py::arg("least_scale") = rules.least_scale,
            py::arg("most_scale") = rules.most_scale, py::arg("scale_good_steps") = rules.scale_good_steps,
            doc::ops::update_rules);
    ops.def("optimizer_update", &optimizer_update, py::arg("tensors"), py::arg("control"), py::kw_only(),
            py::arg("kind") = "adamw", py::arg("weight_decay") = 0.0, py::arg("momentum") = 0.9, py::arg("beta1") = 0.9,
            py::arg("beta2") = 0.999, py::arg("eps") = 1e-8, doc::ops::optimizer_update);
    ops.def("average_update", &average_update, py::arg("tensors"), py::arg("control"), doc::ops::average_update);
    ops.def("restore_skipped", &restore_skipped, py::arg("tensors"), py::arg("control"), doc::ops::restore_skipped);
}

}  // namespace stipple::python
