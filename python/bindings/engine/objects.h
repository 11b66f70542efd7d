#pragma once
// stipple.engine.Engine, EngineFile and Calibration.

#include <memory>
#include <mutex>

#include "python/bindings/network/objects.h"
#include "stipple/engine/engine_file.h"

namespace stipple::python {

struct EngineObject {
    std::shared_ptr<const engine::Engine> engine;
};
struct EngineFileObject {
    std::shared_ptr<const engine::EngineFile> file;
};

/// One run at a time: another thread waits, without the GIL.
struct ContextObject {
    std::shared_ptr<const engine::Engine> engine;
    std::shared_ptr<engine::Context> context;
    std::shared_ptr<std::mutex> mutex;
};

/// What a network is given, by name.
struct NamedType {
    std::string name;
    network::TensorType type;
};

/// Arrays by name as rows, and the batches that they are.
struct RowsByName {
    std::vector<engine::Input> inputs;                // in the order of the types
    std::vector<std::pair<int32_t, BatchForm>> sets;  // point sets of the caller, ascending
    int64_t clouds = 0;
    bool is_single = false;

    const BatchForm* form_of(int32_t set) const;
    /// One for each set of the caller; of a network without points as many clouds of one point each.
    std::vector<ops::Batch> batches() const;
};

/// `inputs`: a dict of arrays, or one array for a network of one input. Points are [n, c], [b, n, c], or [total, c]
/// with offsets; several rows of a point [n, w, c] and so on; rows of clouds [b, c], or [c] beside a single cloud.
/// `offsets`: for the first point set, or a dict of them by the names of inputs.
RowsByName rows_by_name(Call& call, const std::vector<NamedType>& types, const py::object& inputs,
                        const py::object& offsets);

}  // namespace stipple::python
