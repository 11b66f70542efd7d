#include <cstdlib>

#include "stipple/core/error.h"
#include "stipple/learn/distributed/backend.h"

#if __has_include(<gloo/algorithm.h>)
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO  // as torch was built; its header is empty without
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

namespace stipple::learn {

c10::intrusive_ptr<Backend> make_gloo(const BackendOptions& options) {
#ifdef USE_C10D_GLOO
    using Gloo = c10d::ProcessGroupGloo;
    auto how = Gloo::Options::create(options.timeout);
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");  // as torch calls it: eth0
    const bool is_one_machine = options.address == "127.0.0.1" || options.address == "localhost";
    how->devices.push_back(interface && *interface ? Gloo::createDeviceForInterface(interface)
                           : is_one_machine        ? Gloo::createDeviceForHostname("127.0.0.1")
                                                   : Gloo::createDefaultDevice());
    how->threads = 2;
    return c10::make_intrusive<Gloo>(options.store, options.rank, options.world, how);
#else
    (void)options;
    throw Error(ErrorCode::no_device, "ranks on CPUs need Gloo, whose headers were not there when this was built",
                "build with Debian's libtorch-dev and libgloo-dev, or train on GPUs");
#endif
}

}  // namespace stipple::learn
