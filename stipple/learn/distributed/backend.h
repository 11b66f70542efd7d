#pragma once
// Backends of c10d, each made in a source of its own: their headers want libraries that not every build has.

#include <chrono>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace stipple::learn {

#if TORCH_VERSION_MAJOR >= 2
using Backend = c10d::Backend;
#else
using Backend = c10d::ProcessGroup;  // split into two later
#endif

struct BackendOptions {
    c10::intrusive_ptr<c10d::Store> store;
    int rank = 0, world = 1;
    std::string address;  // of rank 0: ranks of one machine talk over its loopback
    std::chrono::milliseconds timeout;
};

/// Throws Error{no_device} in a build whose torch has no Gloo headers: that of a wheel.
c10::intrusive_ptr<Backend> make_gloo(const BackendOptions& options);

namespace cuda {
/// Throws Error{no_device} where NCCL's header was not there.
c10::intrusive_ptr<Backend> make_nccl(const BackendOptions& options);
/// Before it is freed. What is queued may wait for a rank that is gone: aborted, it does not.
void close_nccl(Backend& backend, bool aborts);
}  // namespace cuda

}  // namespace stipple::learn
