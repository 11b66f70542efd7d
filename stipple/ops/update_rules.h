#pragma once
// What a step of training decides from its own numbers, where they are: whether it is made, how far gradients are
// clipped, which loss scale comes next. The host is not asked, so steps can be launched ahead or be one CUDA graph.

#include "stipple/core/view.h"

namespace stipple::ops {

/// Numbers that outlive a step, by their place in `state`. Whole numbers but for loss_scale.
struct StepSlot {
    enum Index {
        steps,            // made or not
        updates,          // steps made: of the optimiser
        average_updates,  // of moving averages
        loss_scale,
        good_steps,        // since the scale last changed
        skipped,           // not made for another reason than a scale that could be lowered
        skipped_in_a_row,  // of these, since the last step that was made
        count
    };
};

/// What a step is told, by its place in `control`. All are 0 where it is not made.
struct ControlSlot {
    enum Index {
        is_made,          // 1 or 0
        rate,             // of learning
        gradient_factor,  // what gradients are multiplied with: clipped, without the loss scale
        correction1,      // 1 - beta1^t, t = updates with this one
        correction2,      // 1 - beta2^t
        average_decay,    // min(decay, (1 + n) / (10 + n)), n = updates of averages before; 0 without averages
        count
    };
};

/// A row of `log`.
struct LogSlot {
    enum Index {
        loss,
        gradient_norm,  // without the loss scale
        is_made,
        loss_scale,  // that this step was computed with; 1 without one
        count
    };
};

/// What does not change in a run.
struct UpdateRules {
    double clip = 0;           // largest norm of the gradients; 0: none
    double average_decay = 0;  // of moving averages, below 1; 0: there are none
    double beta1 = 0.9, beta2 = 0.999;
    bool has_loss_scale = false;
    double least_scale = 1, most_scale = 16777216;
    int64_t scale_good_steps = 1000;  // in a row, after which the scale is doubled
};

/// Decides over the step that has just computed its gradients. s is the loss scale, or 1 without has_loss_scale, and
/// g = gradient_norm / s.
///
///   loss and g finite   The step is made, with rates[steps - first_step] and gradients times (g > clip > 0 ? clip / g
///   :
///                       1) / s. skipped_in_a_row becomes 0. The scale is doubled after scale_good_steps such steps in
///                       a row, unless it is the most already.
///   g not finite        With a loss scale and a finite loss the scale is to blame: it is halved, good_steps begins
///                       anew and nothing else is counted. Where it is the least already, the step counts as skipped.
///   otherwise           The step is not made and counts as skipped.
///
/// In each case steps grows by 1 and row steps - first_step of the log is written, if the log has it. In the log a step
/// that only lowered the scale has a finite loss, is_made 0 and a loss_scale above the least.
///
/// rates          [n] learning rate of each step of a stretch
/// first_step     [1] the step of rates[0] and of the log's first row
/// gradient_norm  [1] of the gradients of the loss times s
/// loss           [1] not scaled
/// state          [StepSlot::count] read and written. A run begins with zeros and the first loss scale
/// control        [ControlSlot::count] written
/// log            [capacity, LogSlot::count], may be empty
///
/// A step out of the stretch, for which there is no rate, is not made and changes nothing but control, which is all 0;
/// that steps stands still shows it.
///
/// All contiguous on one device. The same arithmetic, in float64, on CPU and CUDA; corrections may differ in the last
/// bits, which pow() does not promise. One thread, O(1).
///
/// Throws Error{bad_argument} for wrong shapes, mixed devices and rules out of range.
void update_rules(const UpdateRules& rules, View<const double, 1> rates, View<const double, 1> first_step,
                  View<const float, 1> gradient_norm, View<const double, 1> loss, View<double, 1> state,
                  View<double, 1> control, View<double, 2> log, Stream stream = {});

namespace cuda {
void update_rules(const UpdateRules& rules, View<const double, 1> rates, View<const double, 1> first_step,
                  View<const float, 1> gradient_norm, View<const double, 1> loss, View<double, 1> state,
                  View<double, 1> control, View<double, 2> log, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
