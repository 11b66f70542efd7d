#include "stipple/bench/prepare.h"
#include "stipple/ops/dropout.h"
#include "stipple/ops/gradient_norm.h"
#include "stipple/ops/optimizer_update.h"
#include "stipple/ops/update_rules.h"

namespace stipple::bench {
namespace {

using ops::ControlSlot, ops::StepSlot;

template <class T>
std::shared_ptr<Array<T, 1>> numbers_on(const std::vector<T>& values, Device device) {
    Array<T, 1> array({static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), array.data());
    return keep(array.to(device));
}

Case dropout_case(int64_t rows, int64_t c) {
    return {.op = "dropout",
            .shape = fmt::format("{} x {}, float32", rows, c),
            .points = rows,
            .bytes = rows * c * 8,
            .prepare = [=](Device device) {
                const auto x = keep(uniform_rows(rows, c, 1).to(device)), out = room_for_rows(rows, c, device);
                const auto step = numbers_on<int64_t>({7}, device);
                return [=] { ops::dropout(std::as_const(*x).view(), 0.3f, 1, step->data(), 0, out->data()); };
            }};
}

/// Sizes as a network has them: many small tensors, and a few that hold most of the numbers.
std::vector<int64_t> tensor_sizes(int64_t total) {
    std::vector<int64_t> sizes;
    for (int64_t left = total; left > 0; left -= sizes.back()) sizes.push_back(std::max<int64_t>(left / 4, 1));
    return sizes;
}

Case gradient_norm_case(int64_t total) {
    return {.op = "gradient_norm",
            .shape = fmt::format("{} numbers in {} tensors", total, tensor_sizes(total).size()),
            .points = total,
            .bytes = total * 4,
            .prepare = [=](Device device) {
                const auto norm = room_for_floats(1, device);
                std::vector<std::shared_ptr<Array<float, 2>>> kept;
                std::vector<ops::GradientTensor> gradients;
                for (const int64_t size : tensor_sizes(total)) {
                    kept.push_back(keep(uniform_rows(size, 1, 1).to(device)));
                    gradients.push_back({kept.back()->data(), DType::f32, size});
                }
                return [=] {
                    (void)kept;
                    ops::gradient_norm(gradients, norm->view());
                };
            }};
}

Case update_rules_case() {
    return {.op = "update_rules",
            .shape = "one step",
            .points = 1,
            .bytes = int64_t{StepSlot::count} * 16 + int64_t{ControlSlot::count} * 8,
            .prepare = [=](Device device) {
                std::vector<double> first(StepSlot::count);
                first[StepSlot::loss_scale] = 65536;
                const auto state = numbers_on(first, device), control = room<double, 1>({ControlSlot::count}, device);
                const auto rates = numbers_on<double>({1e-3}, device), loss = numbers_on<double>({1.0}, device);
                const auto norm = numbers_on<float>({1000.0f}, device);
                ops::UpdateRules rules;
                rules.has_loss_scale = true;
                rules.clip = 1;
                return [=] {
                    // The first step of a stretch, every time: it is the step that comes.
                    const View<const double, 1> now(state->data() + StepSlot::steps, {1}, device);
                    ops::update_rules(rules, std::as_const(*rates).view(), now, std::as_const(*norm).view(),
                                      std::as_const(*loss).view(), state->view(), control->view(),
                                      View<double, 2>(nullptr, {0, ops::LogSlot::count}, device));
                };
            }};
}

Case optimizer_case(int64_t total) {
    return {.op = "optimizer_update",
            .shape = fmt::format("adamw, {} numbers in {} tensors", total, tensor_sizes(total).size()),
            .points = total,
            .bytes = total * 28,
            .prepare = [=](Device device) {
                std::vector<double> made(ControlSlot::count);
                made[ControlSlot::is_made] = 1;
                made[ControlSlot::gradient_factor] = 1;
                made[ControlSlot::correction1] = made[ControlSlot::correction2] =
                    0.5;  // and a rate of 0: nothing drifts
                const auto control = numbers_on(made, device);
                std::vector<std::shared_ptr<Array<float, 2>>> kept;
                std::vector<ops::UpdatedTensor> tensors;
                for (const int64_t size : tensor_sizes(total)) {
                    const int64_t room = (size + 3) / 4 * 4;  // all four begin at multiples of 16 bytes
                    kept.push_back(keep(uniform_rows(4 * room, 1, 1).to(device)));
                    float* data = kept.back()->data();
                    tensors.push_back({.value = data,
                                       .gradient = data + room,
                                       .first = data + 2 * room,
                                       .second = data + 3 * room,
                                       .count = size});
                }
                return [=] {
                    (void)kept;
                    ops::optimizer_update(tensors, {}, std::as_const(*control).view());
                };
            }};
}

}  // namespace

std::vector<Case> training_cases(Size size) {
    if (size == Size::tiny)
        return {dropout_case(20, 8), gradient_norm_case(300), update_rules_case(), optimizer_case(300)};
    return {dropout_case(16384, 256), gradient_norm_case(1'000'000), update_rules_case(), optimizer_case(1'000'000)};
}

}  // namespace stipple::bench
