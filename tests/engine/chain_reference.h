#pragma once
// A chain of dense layers as slow plain loops with sums in double: what every fast kernel is compared with. bf16 and
// int8 are the factors rounded as those precisions round them (int8 sums are then exact).

#include <vector>

#include "stipple/engine/cpu/chain/chain.h"

namespace stipple::test {

/// As Chain::run: writes task.out, or raises it to the largest raw product (Reduce::max_points).
void run_chain_reference(const std::vector<engine::Dense>& layers, engine::Reduce reduce,
                         const engine::cpu::ChainTask& task);
/// As Chain::finish.
void finish_chain_reference(const std::vector<engine::Dense>& layers, float* raw);

/// Round to nearest even.
float round_to_bf16(float x);

}  // namespace stipple::test
