#pragma once
// What the engine does with a kind of layer, described once: how it becomes forms and steps, and for each kind of step
// what it must look like and how the CPU runs it. One file a group, as in network/kinds; registry.cpp knows the groups.
// The kernels of the GPU are in cuda/steps_*.cu, in tables of the same kind.

#include <span>
#include <string_view>

#include "stipple/engine/program.h"

namespace stipple::engine {

class ProgramCheck;  // program/check_program.h

namespace lowering {
class NetworkReader;  // lower/reader.h
struct Form;

/// A layer as forms and nodes of the graph. Returns the form of its output.
struct LayerLowering {
    network::Kind kind = network::Kind::input;
    Form (*lower)(NetworkReader& reader, const network::Layer& layer) = nullptr;
};
}  // namespace lowering

namespace cpu {
struct Piece;  // cpu/piece.h

/// How the CPU cuts a step into pieces of work.
enum class Cut {
    own,       // it has code of its own (cpu/run_steps.cpp): chain, knn
    rows,      // rows of the output
    points,    // points; each reads all its rows of the first input
    channels,  // channels of the output: a cloud's row each
    matrix,    // rows of a matrix [.., k], where the first input is [k, k]
    cloud,     // a cloud is one piece
};
}  // namespace cpu

struct StepType {
    StepKind kind = StepKind::chain;
    std::string_view name;  // of the enumerator: in text and in engine files
    /// Fails unless inputs, output and options fit. Names, factor and activation are checked for all kinds alike.
    void (*check)(const ProgramCheck& check, const Step& step) = nullptr;
    cpu::Cut cut = cpu::Cut::rows;
    void (*run)(const cpu::Piece& piece) = nullptr;  // on the CPU
    bool has_weight = false;                         // Step::weight
};

/// Null for a number that is no kind.
const StepType* find_step_type(StepKind kind);
const StepType& step_type(StepKind kind);
/// All kinds, in the order of the enumerators.
std::span<const StepType* const> step_types();

/// Null when the engine has no way to run it.
const lowering::LayerLowering* find_lowering(network::Kind kind);

struct KindGroup {
    std::span<const lowering::LayerLowering> layers;
    std::span<const StepType> steps;
};

/// The groups.
KindGroup dense_group();
KindGroup matrix_group();
KindGroup reduction_group();
KindGroup channel_group();
KindGroup neighbour_group();
KindGroup attention_group();
KindGroup arithmetic_group();
KindGroup flow_group();
KindGroup flow_step_group();

}  // namespace stipple::engine
