#pragma once
// What the bindings of ops share.

#include "docstrings.h"
#include "python/bindings/common/call.h"
#include "python/bindings/common/record.h"
#include "python/bindings/module.h"
#include "stipple/ops/distance_norm.h"
#include "stipple/ops/invert_index.h"

namespace stipple::python {

inline constexpr Word<ops::DistanceNorm> kNorms[] = {{"squared", ops::DistanceNorm::squared},
                                                     {"euclidean", ops::DistanceNorm::euclidean}};

inline ops::DistanceNorm norm_of(std::string_view norm) {
    return choice(norm, "norm", kNorms);
}

/// Part i of a record, or of any other sequence of `count` parts.
inline py::object part_of(const py::object& sequence, const char* name, int count, int i) {
    if (!PySequence_Check(sequence.ptr()) || PySequence_Size(sequence.ptr()) != count) {
        PyErr_Clear();
        throw py::type_error(std::string(name) + ": wanted is a tuple of " + std::to_string(count) + " arrays");
    }
    return py::reinterpret_steal<py::object>(PySequence_GetItem(sequence.ptr(), i));
}

/// What invert_index returned.
inline ops::InvertedIndex inverse_of(Call& call, const py::object& inverse) {
    return {call.array<int32_t, 2>(part_of(inverse, "inverse", 2, 0), "inverse.ranges"),
            call.array<int32_t, 1>(part_of(inverse, "inverse", 2, 1), "inverse.positions")};
}

struct PairGradients {
    static constexpr auto name = py::detail::const_name("PairGradients");
    static constexpr const char* fields[] = {"dL_da", "dL_db"};
};

}  // namespace stipple::python
