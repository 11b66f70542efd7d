#pragma once
// The data sets, which are no part of the sources. What they prove is also proven on shapes that tests make themselves.

#include <optional>
#include <string>

namespace stipple::test {

/// A file or folder of the data sets, e.g. data_file("upsample_dev/meshes"): below $STIPPLE_TEST_DATA, or
/// ../shared/data beside the sources. Nothing where it is not there.
std::optional<std::string> data_file(const std::string& relative);

}  // namespace stipple::test

/// Skips the test where the data set is not there.
#define STIPPLE_NEEDS_DATA(relative)           \
    if (!::stipple::test::data_file(relative)) \
    GTEST_SKIP() << "no " << (relative) << " below STIPPLE_TEST_DATA or ../shared/data beside the sources"
