// The one source that sees NCCL. Built with STIPPLE_WITH_CUDA alone, as all whose names begin with cuda_.

#include <cstdlib>

#include "stipple/core/error.h"
#include "stipple/learn/distributed/backend.h"

#if __has_include(<nccl.h>)
#ifndef USE_C10D_NCCL
#define USE_C10D_NCCL  // as torch was built; its header is empty without
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace stipple::learn::cuda {

c10::intrusive_ptr<Backend> make_nccl(const BackendOptions& options) {
#ifdef USE_C10D_NCCL
    // torch's own answer to a lost rank is to end the process from another thread; ours names the rank.
    ::setenv(TORCH_VERSION_MAJOR >= 2 ? "TORCH_NCCL_ASYNC_ERROR_HANDLING" : "NCCL_ASYNC_ERROR_HANDLING", "0", 0);
    auto how = c10d::ProcessGroupNCCL::Options::create();
    how->timeout = options.timeout;
    return c10::make_intrusive<c10d::ProcessGroupNCCL>(options.store, options.rank, options.world, how);
#else
    (void)options;
    throw Error(ErrorCode::no_device, "ranks on GPUs need NCCL, whose header was not there when this was built",
                "install libnccl-dev and build again");
#endif
}

void close_nccl(Backend& backend, bool aborts) {
#if TORCH_VERSION_MAJOR >= 2
    if (aborts)
        backend.abort();
    else
        backend.shutdown();
#else
    (void)backend;
    (void)aborts;
#endif
}

}  // namespace stipple::learn::cuda
