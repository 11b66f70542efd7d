#pragma once
// What a run begins with, by its recipe: arithmetic, weights, the module.

#include <map>
#include <optional>
#include <string>

#include "stipple/learn/objective.h"
#include "stipple/learn/optimizer.h"
#include "stipple/learn/recipe.h"

namespace stipple::learn {

/// Same recipe and seed, same bits; products of a GPU as the recipe says.
void set_arithmetic(const Recipe& recipe);

/// Of RunOptions::products.
std::optional<torch::Dtype> type_of_products(Precision precision);

/// `initial`, or those of the recipe's seed; with what the objective wants its weights to tell.
network::Weights first_weights(const Recipe& recipe, const Objective& objective,
                               const std::optional<network::Weights>& initial);

/// With weights as short as the precision wants them. Throws Error{bad_config} for float16 without a GPU.
Module module_for(const Recipe& recipe, const Objective& objective, const network::Weights& weights,
                  torch::Device device);

/// What a moving average follows: the masters where there are some, else the parameters.
std::map<std::string, torch::Tensor> averaged(const Module& module, const Optimizer& optimizer);

}  // namespace stipple::learn
