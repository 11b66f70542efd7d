#pragma once
// A small data set of parts, in the layout part-hdf5, for tests of the program.

#include <filesystem>

#include "stipple/io/hdf5.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {

/// Three cups (2 parts) and two lamps (3 parts) of 40 points in a split test, one of each in train. Returns its path.
inline std::string save_parts(const std::string& path) {
    std::filesystem::create_directories(path);
    const auto split = [&](const std::string& name, const std::vector<int64_t>& labels) {
        const auto m = static_cast<int64_t>(labels.size());
        io::CloudSet set;
        set.points = Array<float, 3>({m, 40, 3});
        set.parts = Array<int32_t, 2>({m, 40});
        set.labels = labels;
        for (int64_t i = 0; i < m * 120; ++i)
            set.points.data()[i] = static_cast<float>((i * 37 + i / 120 * 11) % 101) / 50 - 1;
        for (int64_t i = 0; i < m * 40; ++i)
            set.parts.data()[i] = static_cast<int32_t>(labels[static_cast<size_t>(i / 40)] == 0 ? i % 2 : 2 + i % 3);
        for (int64_t i = 0; i < m; ++i) set.names.push_back(name + std::to_string(i));
        io::save_hdf5(path + "/ply_data_" + name + "0.h5", set, Overwrite::allow);
    };
    split("test", {0, 1, 0, 1, 0});
    split("train", {0, 1});
    write_file(path + "/all_object_categories.txt", "Cup\nLamp\n");
    write_file(path + "/parts.json",
               R"({"Cup": [[0, "body"], [1, "handle"]], "Lamp": [[2, "base"], [3, "bulb"], [4, "canopy"]]})");
    return path;
}

}  // namespace stipple::test
