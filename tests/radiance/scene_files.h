#pragma once
// Folders of scenes for tests.

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "stipple/io/colmap.h"
#include "stipple/io/image_file.h"
#include "stipple/radiance/scene.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {

/// The transforms_*.json of photographs, their files named relative to the folder.
inline std::string transforms_text(const std::vector<radiance::Photograph>& photographs, const std::string& head = {}) {
    const radiance::Camera& first = photographs.front().camera;
    std::string text = fmt::format(
        "{{{}",
        head.empty() ? fmt::format("\"camera_angle_x\": {:.17g}", 2 * std::atan(0.5 * first.width / first.fx)) : head);
    text += ",\n\"frames\": [";
    for (size_t i = 0; i < photographs.size(); ++i) {
        const auto& m = photographs[i].camera.to_world;
        text +=
            fmt::format("{}\n{{\"file_path\": \"./{}\", \"transform_matrix\": [", i ? "," : "", photographs[i].file);
        for (size_t row = 0; row < 3; ++row)
            text += fmt::format("[{:.9g},{:.9g},{:.9g},{:.9g}],", m[4 * row], m[4 * row + 1], m[4 * row + 2],
                                m[4 * row + 3]);
        text += "[0,0,0,1]]}";
    }
    return text + "]}\n";
}

/// The pictures of a scene, by Photograph::file.
inline void save_pictures(const std::string& folder, const std::vector<radiance::Photograph>& photographs) {
    for (const radiance::Photograph& photograph : photographs) {
        const std::filesystem::path path = folder + "/" + photograph.file;
        std::filesystem::create_directories(path.parent_path());
        io::save_png(path.string(), photograph.pixels, Overwrite::allow);
    }
}

/// Blender's layout.
inline void save_blender(const std::string& folder, const radiance::Scene& scene) {
    save_pictures(folder, scene.train);
    save_pictures(folder, scene.test);
    write_file(folder + "/transforms_train.json", transforms_text(scene.train));
    if (!scene.test.empty()) write_file(folder + "/transforms_test.json", transforms_text(scene.test));
}

}  // namespace stipple::test
