#pragma once
// The list of ops. docs/ops.md, `stipple info` and the test that every op is tested, benched and documented read it.

#include <span>
#include <string>

namespace stipple::ops {

struct OpInfo {
    const char* name;     // "knn": stipple/ops/knn.h, a case in `stipple bench ops`
    const char* group;    // "search": stipple/ops/search/knn.cpp and .cu, tests/ops/search/knn_test.cpp
    const char* summary;  // one line
    bool cpu, cuda, gradient;
    const char* cost;              // time
    const char* source = nullptr;  // when the kernels are not in NAME.cu: "group.cu", in the same folder
};

std::span<const OpInfo> registry();

/// docs/ops.md.
std::string registry_markdown();

}  // namespace stipple::ops
