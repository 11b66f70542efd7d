#pragma once
// Losses: plain functions of tensors that return one float64 number, so that what is logged and added up does not lose
// digits; gradients arrive in the type of the inputs.

#include <torch/types.h>

#include "stipple/learn/functions.h"
#include "stipple/learn/recipe.h"

namespace stipple::learn {

struct CrossEntropyOptions {
    double label_smoothing = 0;  // in [0, 1): this part of a label is spread evenly over all classes (allowed ones)
    torch::Tensor class_weights = {};  // [classes]: weight of a row by its label; undefined: 1
    int64_t ignore_label = -1;         // rows of this label count for nothing
    torch::Tensor allowed = {};        // bool [rows, classes]: classes that a row may have; undefined: all
};

/// Mean over the rows of -sum over c of q_c log softmax(logits)_c, q the smoothed label.
///
/// logits  [rows, classes], of any floating type
/// labels  [rows] int64
///
/// With class weights it is PyTorch's weighted mean: the terms of class c times its weight, over the sum of the labels'
/// weights. A class that is not allowed has probability 0 and gets no gradient. 0 where no row counts. NaN in a row
/// that counts is NaN in the loss. A label that is not a class, or not an allowed one, is Error{bad_argument} with its
/// row on the CPU; on CUDA, where looking would mean to wait, the loss is NaN. Throws Error{bad_argument} for wrong
/// shapes, types and options.
torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& labels,
                            const CrossEntropyOptions& options = {});

/// For CrossEntropyOptions::allowed of points: bool [points, parts], true where the part belongs to the category of the
/// point's cloud.
///
/// categories         [clouds] int64
/// parts_of_category  bool [categories, parts]
torch::Tensor allowed_parts(const ops::Batch& batch, const torch::Tensor& categories,
                            const torch::Tensor& parts_of_category);

/// How far the matrices of a T-net are from orthogonal.
/// matrices: [clouds, k * k] as a Network gives them, or [clouds, k, k]. The gradient at an orthogonal A is 0.
torch::Tensor transform_regulariser(const torch::Tensor& matrices, TransformConvention convention);

/// Knowledge distillation [Hinton et al. 2015]: T^2 times the mean over the rows of KL(teacher | student), both by
/// softmax(logits / T). [rows, classes] each; the teacher gets no gradient. T > 0, or Error{bad_argument}.
torch::Tensor distillation(const torch::Tensor& student_logits, const torch::Tensor& teacher_logits,
                           double temperature);

enum class ChamferConvention {
    squared_sum,     // mean of squared distances, a to b plus b to a: "CD-T"
    half_euclidean,  // half of the same sum of distances: "CD-P"
};

/// Means over the clouds, one of each pair. NaN as in functions.h.
torch::Tensor chamfer_loss(const Clouds& a, const Clouds& b, ChamferConvention convention);
torch::Tensor emd_loss(const Clouds& a, const Clouds& b, const ops::EmdOptions& options = {});

/// The regularised optimum, or, debiased, less half of those of a with itself and of b with itself: the Sinkhorn
/// divergence [Feydy et al. 2019], which is 0 for equal clouds. Three times the work.
torch::Tensor sinkhorn_loss(const Clouds& a, const Clouds& b, const ops::SinkhornOptions& options = {},
                            bool is_debiased = false);

/// Of a flow whose network gives -log p of each cloud as an output [clouds, 1] (PU-Flow: "nll"): the mean over the
/// clouds, in nats a cloud, as published recipes weigh it.
torch::Tensor flow_loss(const torch::Tensor& negative_log_likelihoods);

}  // namespace stipple::learn
