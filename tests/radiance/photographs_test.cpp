// Photographs without cameras, with a colmap that is a script.

#include "stipple/radiance/scene/photographs.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "stipple/radiance/scene.h"
#include "tests/radiance/scene_files.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/expect_error.h"

namespace stipple::radiance {
namespace {

using test::TemporaryFolder;

/// PATH for the length of a test.
class PathVariable {
public:
    explicit PathVariable(const std::string& value) : before_(std::getenv("PATH") ? std::getenv("PATH") : "") {
        ::setenv("PATH", value.c_str(), 1);
    }
    ~PathVariable() { ::setenv("PATH", before_.c_str(), 1); }

private:
    std::string before_;
};

void write_script(const std::string& folder, const std::string& body) {
    test::write_file(folder + "/colmap", "#!/bin/sh\n" + body);
    std::filesystem::permissions(folder + "/colmap", std::filesystem::perms::owner_all);
}

struct PhotographFolder {
    TemporaryFolder folder, programs;
    Scene saved = test::analytic_scene(12, 5, 0, 3);
    std::string pictures = folder / "images";

    PhotographFolder() {
        std::filesystem::create_directories(pictures);
        for (Photograph& photograph : saved.train) {
            photograph.file = std::filesystem::path(photograph.file).filename().string();
            io::save_png(pictures + "/" + photograph.file, photograph.pixels, Overwrite::refuse);
        }
        // The model that the script's mapper "finds".
        std::filesystem::create_directories(programs / "0");
        io::write_colmap_binary(programs / "0", to_colmap(saved.train, {}, [](const Photograph& p) { return p.file; }),
                                Overwrite::refuse);
    }
};

TEST(Photographs, ColmapFindsTheirCameras) {
    const PhotographFolder photographs;
    const std::string& root = photographs.programs.path();
    write_script(root,
                 "echo \"$@\" >> " + root + "/calls\n" +
                     "case $1 in\n"
                     "help) echo 'COLMAP 3.8 (without CUDA)';;\n"
                     "feature_extractor) [ \"$2\" = --help ] && echo ' --SiftExtraction.use_gpu arg (=1)'; true;;\n"
                     "exhaustive_matcher) [ \"$2\" = --help ] && echo ' --SiftMatching.use_gpu arg (=1)'; true;;\n"
                     "mapper) cp -r " +
                     root +
                     "/0 \"$7\"/0;;\n"
                     "esac\n");
    const PathVariable path(root + ":/usr/bin:/bin");
    std::vector<std::string> lines;
    SceneOptions options;
    options.report = [&](const std::string& line) { lines.push_back(line); };
    const Scene scene = load_scene(photographs.folder.path(), options);
    EXPECT_EQ(scene.train.size(), 4u);
    EXPECT_EQ(scene.source, "colmap binary");
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0], "colmap: finding features of 5 photographs (step 1 of 3)");
    const std::string calls = test::read_file(root + "/calls"), folder = photographs.folder.path();
    EXPECT_NE(calls.find("feature_extractor --database_path " + folder + "/colmap.db --image_path " + folder +
                         "/images --SiftExtraction.use_gpu 0\n"),
              std::string::npos)
        << calls;
    EXPECT_NE(calls.find("exhaustive_matcher --database_path " + folder + "/colmap.db --SiftMatching.use_gpu 0\n"),
              std::string::npos)
        << calls;
    // The second time the model is there.
    lines.clear();
    load_scene(photographs.folder.path(), options);
    EXPECT_TRUE(lines.empty());
}

TEST(Photographs, WithoutColmapTheErrorSaysWhatToDo) {
    const PhotographFolder photographs;
    const PathVariable path(photographs.programs.path());
    try {
        load_scene(photographs.folder.path());
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file);
        EXPECT_NE(std::string(error.what()).find("5 photographs without cameras, and the program colmap"),
                  std::string::npos)
            << error.what();
        EXPECT_NE(error.hint().find("apt-get install colmap"), std::string::npos);
        EXPECT_NE(error.hint().find("colmap mapper --database_path"), std::string::npos);
    }
    SceneOptions options;
    options.find_cameras = false;
    EXPECT_ERROR(load_scene(photographs.folder.path(), options), bad_file, "photographs without cameras: neither");
    EXPECT_FALSE(std::filesystem::exists(photographs.folder / "sparse"));
}

TEST(Photographs, FailuresOfColmapAreTold) {
    const PhotographFolder photographs;
    const std::string& root = photographs.programs.path();
    const PathVariable path(root + ":/usr/bin:/bin");
    write_script(root, "[ $1 = exhaustive_matcher ] && echo 'no such luck' && exit 3\nexit 0\n");
    EXPECT_ERROR(load_scene(photographs.folder.path()), bad_file,
                 "colmap exhaustive_matcher ended with status 3: \"no such luck\"");
    EXPECT_NE(test::read_file(photographs.folder / "colmap.log").find("no such luck"), std::string::npos);
    write_script(root, "[ $1 = mapper ] && kill -9 $$\nexit 0\n");
    EXPECT_ERROR(load_scene(photographs.folder.path()), bad_file, "colmap mapper ended with status 137");
    write_script(root, "exit 0\n");
    EXPECT_ERROR(load_scene(photographs.folder.path()), bad_file, "colmap found no cameras for these 5 photographs");
}

TEST(Photographs, AreListedByName) {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder / "b/.hidden");
    for (const char* name : {"z.JPG", "b/a.png", "b/.hidden/c.png", "notes.txt", "c.jpeg"})
        test::write_file(folder / name, "x");
    EXPECT_EQ(list_pictures(folder.path()), (std::vector<std::string>{"b/a.png", "c.jpeg", "z.JPG"}));
    EXPECT_EQ(picture_folder(folder.path()), folder.path());
}

}  // namespace
}  // namespace stipple::radiance
