#include "stipple/learn/losses.h"

#include <torch/torch.h>

#include "stipple/learn/evaluate/clouds.h"

namespace stipple::learn {
namespace {

torch::Tensor mean_of(const torch::Tensor& values) {
    return values.mean(torch::kFloat64);
}

void require_logits(const char* loss, const torch::Tensor& logits) {
    STIPPLE_REQUIRE(logits.defined() && logits.dim() == 2 && logits.is_floating_point(),
                    "{}: logits must be [rows, classes] of a floating type", loss);
}

/// Names the first row whose label is not one of its classes. Waits for the tensors, so for the CPU alone.
void require_labels(const torch::Tensor& labels, const torch::Tensor& is_wrong, int64_t classes) {
    if (!labels.is_cpu() || !is_wrong.any().item<bool>()) return;
    const int64_t row = is_wrong.to(torch::kInt32).argmax(0).item<int64_t>(), label = labels[row].item<int64_t>();
    STIPPLE_REQUIRE(label >= 0 && label < classes, "cross_entropy: label {} in row {}, there are {} classes", label,
                    row, classes);
    STIPPLE_REQUIRE(false, "cross_entropy: label {} in row {} is not allowed there", label, row);
}

}  // namespace

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& labels,
                            const CrossEntropyOptions& options) {
    require_logits("cross_entropy", logits);
    const int64_t rows = logits.size(0), classes = logits.size(1);
    const auto require_shape = [](const char* name, const torch::Tensor& tensor, torch::IntArrayRef shape) {
        STIPPLE_REQUIRE(tensor.sizes() == shape, "cross_entropy: {} do not fit the logits", name);
    };
    STIPPLE_REQUIRE(labels.defined() && labels.scalar_type() == torch::kInt64, "cross_entropy: labels must be int64");
    require_shape("labels", labels, {rows});
    const double smoothing = options.label_smoothing;
    STIPPLE_REQUIRE(smoothing >= 0 && smoothing < 1, "cross_entropy: label smoothing {} is not in [0, 1)", smoothing);

    torch::Tensor scores = logits;
    if (options.allowed.defined()) {
        STIPPLE_REQUIRE(options.allowed.scalar_type() == torch::kBool, "cross_entropy: allowed must be bool");
        require_shape("allowed classes", options.allowed, {rows, classes});
        scores = scores.masked_fill(options.allowed.logical_not(), -INFINITY);
    }
    const torch::Tensor is_ignored = labels == options.ignore_label;
    torch::Tensor is_wrong = (labels < 0).logical_or(labels >= classes).logical_and(is_ignored.logical_not());
    const torch::Tensor column = labels.clamp(0, std::max<int64_t>(classes - 1, 0)).unsqueeze(1);
    if (options.allowed.defined())
        is_wrong =
            is_wrong.logical_or(options.allowed.gather(1, column).squeeze(1).logical_or(is_ignored).logical_not());
    require_labels(labels, is_wrong, classes);

    const torch::Tensor log_p = torch::log_softmax(scores, 1);
    torch::Tensor weight_of_row = torch::ones({rows}, logits.options());
    torch::Tensor weights = torch::ones({classes}, logits.options());
    if (options.class_weights.defined()) {
        require_shape("class weights", options.class_weights, {classes});
        weights = options.class_weights.to(logits.options());
        weight_of_row = weights.index_select(0, column.squeeze(1));
    }
    torch::Tensor loss = log_p.gather(1, column).squeeze(1) * weight_of_row * -(1 - smoothing);
    if (smoothing > 0) {
        // -infinity times 0 would be NaN, so that classes which are not allowed are taken out before the product.
        torch::Tensor terms = log_p * weights;
        torch::Tensor count = torch::full({rows}, static_cast<double>(classes), logits.options());
        if (options.allowed.defined()) {
            terms = log_p.masked_fill(options.allowed.logical_not(), 0) * weights;
            count = options.allowed.sum(1).to(logits.options());
        }
        loss = loss - smoothing * terms.sum(1) / count;
    }
    loss = loss.masked_fill(is_wrong, NAN).masked_fill(is_ignored, 0);
    const torch::Tensor total = weight_of_row.masked_fill(is_ignored, 0).sum(torch::kFloat64);
    return loss.sum(torch::kFloat64) / torch::where(total > 0, total, torch::ones_like(total));
}

torch::Tensor allowed_parts(const ops::Batch& batch, const torch::Tensor& categories,
                            const torch::Tensor& parts_of_category) {
    STIPPLE_REQUIRE(
        categories.scalar_type() == torch::kInt64 && categories.dim() == 1 && categories.size(0) == batch.clouds(),
        "allowed_parts: categories must be int64 [{}]", batch.clouds());
    STIPPLE_REQUIRE(parts_of_category.scalar_type() == torch::kBool && parts_of_category.dim() == 2,
                    "allowed_parts: parts of categories must be bool [categories, parts]");
    return repeat_for_points(parts_of_category.index_select(0, categories), batch);
}

torch::Tensor transform_regulariser(const torch::Tensor& matrices, TransformConvention convention) {
    const int64_t clouds = matrices.size(0);
    const int64_t k =
        matrices.dim() == 3 ? matrices.size(2) : std::llround(std::sqrt(static_cast<double>(matrices.size(1))));
    STIPPLE_REQUIRE(matrices.numel() == clouds * k * k, "transform_regulariser: the matrices are not square");
    const torch::Tensor a = matrices.reshape({clouds, k, k});
    const torch::Tensor difference = torch::bmm(a, a.transpose(1, 2)) - torch::eye(k, a.options());
    const torch::Tensor squares = difference.square().sum({1, 2}, false, torch::kFloat64);
    if (convention == TransformConvention::tf) return squares.sum() / 2;
    // The root of 0 has no slope, and a T-net that starts at the identity is there.
    const torch::Tensor is_zero = squares == 0;
    return squares.masked_fill(is_zero, 1).sqrt().masked_fill(is_zero, 0).mean();
}

torch::Tensor distillation(const torch::Tensor& student_logits, const torch::Tensor& teacher_logits,
                           double temperature) {
    require_logits("distillation", student_logits);
    STIPPLE_REQUIRE(teacher_logits.sizes() == student_logits.sizes(), "distillation: teacher and student do not fit");
    STIPPLE_REQUIRE(temperature > 0, "distillation: temperature {}", temperature);
    const torch::Tensor teacher = torch::log_softmax(teacher_logits.detach() / temperature, 1);
    const torch::Tensor student = torch::log_softmax(student_logits / temperature, 1);
    // A class that the teacher rules out (probability 0, logarithm -infinity) adds nothing.
    const torch::Tensor p = teacher.exp();
    const torch::Tensor terms = (p * (teacher - student)).masked_fill(p == 0, 0);
    return mean_of(terms.sum(1)) * (temperature * temperature);
}

torch::Tensor chamfer_loss(const Clouds& a, const Clouds& b, ChamferConvention convention) {
    const bool is_squared = convention == ChamferConvention::squared_sum;
    const ChamferMeans means = chamfer(a, b, is_squared ? ops::DistanceNorm::squared : ops::DistanceNorm::euclidean);
    return mean_of(means.a_to_b + means.b_to_a) * (is_squared ? 1.0 : 0.5);
}

torch::Tensor emd_loss(const Clouds& a, const Clouds& b, const ops::EmdOptions& options) {
    return mean_of(emd(a, b, options).cost);
}

torch::Tensor sinkhorn_loss(const Clouds& a, const Clouds& b, const ops::SinkhornOptions& options, bool is_debiased) {
    const torch::Tensor both = mean_of(sinkhorn(a, b, options).dual);
    if (!is_debiased) return both;
    return both - (mean_of(sinkhorn(a, a, options).dual) + mean_of(sinkhorn(b, b, options).dual)) / 2;
}

torch::Tensor flow_loss(const torch::Tensor& negative_log_likelihoods) {
    return mean_of(negative_log_likelihoods);
}

}  // namespace stipple::learn
