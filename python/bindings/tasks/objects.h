#pragma once
// Networks of tasks as Python's objects, and the options that they share.

#include <memory>
#include <mutex>

#include "docstrings.h"
#include "python/bindings/common/any_cloud.h"
#include "python/bindings/common/record.h"
#include "python/bindings/common/small_values.h"
#include "python/bindings/module.h"
#include "stipple/tasks/classify.h"
#include "stipple/tasks/segment.h"

namespace stipple::python {

/// A network that one call at a time uses: other threads wait, without the GIL.
template <class Network>
struct Exclusive {
    std::shared_ptr<Network> network;
    std::shared_ptr<std::mutex> mutex = std::make_shared<std::mutex>();

    template <class Work>
    decltype(auto) run(Work&& work) const {
        return without_gil([&]() -> decltype(auto) {
            const std::lock_guard lock(*mutex);
            return work(*network);
        });
    }
};
using ClassifierObject = Exclusive<tasks::Classifier>;
using SegmenterObject = Exclusive<tasks::Segmenter>;

/// The keywords of every network: where and how it runs.
tasks::RunnerOptions runner_options(const std::string& device, const py::object& precision, int64_t batch,
                                    int64_t points);

/// A path, or the name of shipped weights, with options that replace those of the file.
tasks::ModelOrEngine load_network(const py::object& model, const py::object& options);

/// None: as the cloud lies. "all": all 24 turns. "y", "-z": a direction that is up, and the four turns about it.
std::vector<tasks::Pose> poses_of(const py::object& poses, const tasks::Axis& up);

}  // namespace stipple::python
