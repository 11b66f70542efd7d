#pragma once
// A kind of layer, described once: what everybody who reads a network asks of it. The kinds are listed in tables by
// group, one file a group; registry.cpp knows the groups. What the engine does with a kind is in engine/kinds.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/network/check_layer.h"
#include "stipple/network/network.h"

namespace stipple::network {

struct OnnxExport;  // onnx/export.h

/// One layer under inspection: its inputs and the words for what is wrong with them. Every function throws
/// Error{bad_argument} that names the layer, what it needs and what it got.
class Rules {
public:
    Rules(const Network& network, const Layer& layer);

    template <class... Args>
    [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
        throw Error(ErrorCode::bad_argument, label_of(layer) + ": " + fmt::format(format, std::forward<Args>(args)...));
    }

    size_t inputs() const { return inputs_.size(); }
    const TensorType& type(size_t i) const { return inputs_[i]->type; }
    std::string got(size_t i) const;  // "'pool' is [B, 1024]"

    void need_inputs(size_t count) const;
    const TensorType& numbers(size_t i) const;
    const TensorType& rows(size_t i) const;    // [B, N, w, c]
    const TensorType& points(size_t i) const;  // [B, N, c]: one row a point
    const TensorType& clouds(size_t i) const;  // [B, c]
    const TensorType& indices(size_t i) const;
    void same_rows(size_t a, size_t b) const;
    /// The first layer before with points of a set; null when there is none.
    const Layer* layer_of_set(int32_t set) const;
    void same_types(size_t a, size_t b) const;
    void extent(const char* what, int64_t value) const;

    const Network& network;
    const Layer& layer;

private:
    std::vector<const Layer*> inputs_;
};

TensorType with_channels(TensorType type, int64_t channels);

/// What a kind is about: its colour in diagrams, in the order of their legend.
enum class KindGroup { ends, products, matrices, reductions, channels, neighbours, arithmetic, flows };

constexpr int kAnyInputs = -1;  // one or more
constexpr int kOneOrTwoInputs = -2;

struct LayerKind {
    Kind kind = Kind::input;
    std::string_view name;  // of the enumerator
    int inputs = 1;         // or kAnyInputs, kOneOrTwoInputs
    KindGroup group = KindGroup::arithmetic;

    /// The type of its output. The number of inputs is right, and each of them is there.
    TensorType (*type)(const Rules& rules) = nullptr;

    /// Its nodes; returns the name of their output (an input's name where nothing is to be done).
    std::string (*onnx)(OnnxExport& out, const Layer& layer) = nullptr;

    /// What it was asked for, without what is usual: "64, norm, relu". Null: nothing to tell. `inverse` and whose
    /// parameters it shares are told for all kinds alike.
    std::string (*text)(const LayerOptions& options) = nullptr;

    /// Null: it has none.
    std::vector<Parameter> (*parameters)(const Network& network, const Layer& layer) = nullptr;
    bool owns_parameters = true;  // false: those of the layer that `Layer::parameters` names, whose kind is another

    /// Multiply-adds of one row of the output, where clouds have n points in every set of the caller. Null: no
    /// products.
    int64_t (*multiply_adds)(const Network& network, const Layer& layer, int64_t n) = nullptr;

    /// A linear layer that reads it has the same input in the engine: nothing is folded or cut between them.
    bool is_stored = false;
};

/// Null for a number that is no kind.
const LayerKind* find_kind(Kind kind);
/// Of a layer whose kind is known: what validate() promises.
const LayerKind& kind_of(const Layer& layer);

/// The groups.
std::span<const LayerKind> input_kinds();
std::span<const LayerKind> linear_kinds();
std::span<const LayerKind> activation_kinds();
std::span<const LayerKind> matrix_kinds();
std::span<const LayerKind> reduction_kinds();
std::span<const LayerKind> channel_kinds();
std::span<const LayerKind> neighbour_kinds();
std::span<const LayerKind> attention_kinds();
std::span<const LayerKind> arithmetic_kinds();
std::span<const LayerKind> flow_kinds();
std::span<const LayerKind> flow_step_kinds();

/// For parameters(): the channels of its first input.
int64_t input_channels(const Network& network, const Layer& layer);

// Type rules and exports that several kinds share.
TensorType type_of_numbers(const Rules& rules);       // that of its first input
TensorType type_of_equal_inputs(const Rules& rules);  // two inputs of one type: that type

}  // namespace stipple::network
