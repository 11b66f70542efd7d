// transforms.json: what its parser reads, and what it refuses.
#include "stipple/io/transforms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/data_sets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace stipple::io {
namespace {

constexpr std::string_view kUpright = "[[1,0,0,0.5],[0,1,0,-1],[0,0,1,4],[0,0,0,1]]";

std::string frame_text(std::string_view path, std::string_view matrix = kUpright, std::string_view more = "") {
    return fmt::format("{{\"file_path\": \"{}\", \"transform_matrix\": {}{}}}", path, matrix, more);
}

std::string file_text(std::string_view frames, std::string_view head = "\"camera_angle_x\": 0.7") {
    return fmt::format("{{{}, \"frames\": [{}]}}", head, frames);
}

Transforms transforms_of(std::string_view text, Limits limits = {}) {
    MemorySource source({reinterpret_cast<const std::byte*>(text.data()), text.size()});
    ByteReader reader(source, limits);
    return parse_transforms(reader);
}

TEST(Transforms, ReadsBlendersCameras) {
    const Transforms file = transforms_of(file_text(frame_text("./train/r_0") + "," + frame_text("train/r_1")));
    ASSERT_EQ(file.frames.size(), 2u);
    EXPECT_EQ(file.frames[0].file_path, "train/r_0");
    EXPECT_EQ(file.frames[0].to_world[3], 0.5);
    EXPECT_EQ(file.frames[0].to_world[11], 4);
    const Lens lens = lens_of(file.frames[0], 800, 600);
    EXPECT_DOUBLE_EQ(lens.fx, 400 / std::tan(0.35));
    EXPECT_EQ(lens.fy, lens.fx);
    EXPECT_EQ(lens.cx, 400);
    EXPECT_EQ(lens.cy, 300);
}

TEST(Transforms, FramesGoBeforeTheFile) {
    const std::string more = R"(, "fl_x": 700, "k1": 0.25, "w": 640, "h": 480)";
    const Transforms file = transforms_of(file_text(
        frame_text("a") + "," + frame_text("b", kUpright, more),
        R"("aabb_scale": 16, "fl_x": 500, "fl_y": 510, "cx": 10, "cy": 20, "w": 800, "h": 600, "k1": 0.5, "k2": 1,
                     "p1": 2, "p2": 3, "camera_model": "OPENCV", "is_fisheye": false, "other": {"deep": [1, {"fl_x": 2}]})"));
    EXPECT_EQ(file.frames[0].lens.fx, 500);
    EXPECT_EQ(file.frames[0].lens.fy, 510);
    EXPECT_EQ(file.frames[0].lens.k1, 0.5);
    EXPECT_EQ(file.frames[0].lens.p2, 3);
    EXPECT_EQ(file.frames[0].lens.width, 800);
    EXPECT_EQ(file.frames[1].lens.fx, 700);
    EXPECT_EQ(file.frames[1].lens.k1, 0.25);
    EXPECT_EQ(file.frames[1].lens.k2, 1);
    EXPECT_EQ(file.frames[1].lens.width, 640);
}

TEST(Transforms, AFilesNumbersMayFollowItsFrames) {
    const Transforms file = transforms_of(fmt::format("{{\"frames\": [{}], \"fl_y\": 300}}", frame_text("a")));
    const Lens lens = lens_of(file.frames[0], 100, 50);
    EXPECT_EQ(lens.fx, 300);
    EXPECT_EQ(lens.fy, 300);
}

TEST(Transforms, TakesAScaleOut) {
    const Transforms file = transforms_of(file_text(frame_text("a", "[[0,-3,0,1],[3,0,0,2],[0,0,3,5],[0,0,0,1]]")));
    EXPECT_NEAR(file.frames[0].to_world[1], -1, 1e-12);
    EXPECT_NEAR(file.frames[0].to_world[10], 1, 1e-12);
    EXPECT_EQ(file.frames[0].to_world[11], 5);
}

struct TransformsFault {
    std::string text;
    const char* message;
};

TEST(Transforms, RefusesWithThePlace) {
    const std::string good = frame_text("a");
    const auto matrix = [](std::string_view text) { return file_text(frame_text("a", text)); };
    const std::vector<TransformsFault> faults = {
        {"", "1: the file is empty"},
        {"[]", "is no JSON object"},
        {"{\"camera_angle_x\": 0.7,\n \"frames\": [}", "line 2: column 13"},
        {"{\"camera_angle_x\": NaN}", "column 20: this is no JSON"},
        {"{\"camera_angle_x\": 1e999}", "this is no JSON"},
        {"{\"camera_angle_x\": 0.7}", "names no photographs"},
        {file_text(""), "names no photographs"},
        {file_text(good) + "x", "this is no JSON"},
        {file_text(good, "\"a\": 1"), "has neither camera_angle_x nor fl_x"},
        {file_text(good, "\"camera_angle_x\": 4"), "must lie between 0 and pi"},
        {file_text(good, "\"camera_angle_x\": \"x\""), "must be a number"},
        {file_text(good, "\"camera_angle_x\": 0.5, \"camera_angle_x\": 0.5"), "stands twice"},
        {file_text(good, "\"fl_x\": 0"), "must be above 0"},
        {file_text(good, "\"fl_x\": 5, \"w\": 5.5"), "must be a whole number from 1"},
        {file_text(good, "\"fl_x\": 5, \"w\": 1e9"), "must be a whole number from 1"},
        {file_text(good, "\"fl_x\": 5, \"w\": 10"), "one of w and h"},
        {file_text(good, "\"fl_x\": 5, \"cx\": 10"), "one of cx and cy"},
        {file_text(good, "\"fl_x\": 5, \"k3\": 0.1"), "k1, k2, p1, p2 only"},
        {file_text(good, "\"fl_x\": 5, \"is_fisheye\": true"), "fisheye"},
        {file_text(good, "\"fl_x\": 5, \"camera_model\": \"EQUIRECTANGULAR\""), "\"EQUIRECTANGULAR\", a model"},
        {file_text("{\"file_path\": \"a\"}"), "\"frames/0\" has a transform_matrix of 0 numbers"},
        {file_text(good + ",{\"transform_matrix\": " + std::string(kUpright) + "}"), "\"frames/1\" has no file_path"},
        {file_text(good + "," + good), "\"frames/1\" names \"a\", as \"frames/0\" does"},
        {file_text(good).insert(1, "\"frames\": [" + good + "],"), "stands twice"},
        {file_text(frame_text("a", kUpright, ", \"file_path\": \"b\"")), "stands twice"},
        {file_text(frame_text("a", kUpright, ", \"transform_matrix\": " + std::string(kUpright))), "stands twice"},
        {file_text(frame_text("/etc/passwd")), "is an absolute path"},
        {file_text(frame_text("../a")), "leads out of the folder"},
        {file_text(frame_text("b/../../a")), "leads out of the folder"},
        {file_text(frame_text("")), "names no file"},
        {file_text(frame_text("a/")), "names a folder"},
        {file_text(frame_text("C:\\\\a")), "a character that paths do not have"},
        {matrix("5"), "4 rows of 4 numbers"},
        {matrix("[1,0,0,0]"), "4 rows of 4 numbers"},
        {matrix("[[1,0,0],[0,1,0],[0,0,1]]"), "4 rows of 4 numbers"},
        {matrix("[[1,0,0,0],[0,1,0,0],[0,0,1,0]]"), "of 12 numbers"},
        {matrix("[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1],[0,0,0,1]]"), "4 rows of 4 numbers"},
        {matrix("[[1,0,0,0,7],[0,1,0,0],[0,0,1,0],[0,0,0,1]]"), "4 rows of 4 numbers"},
        {matrix("[[1,0,0,\"x\"],[0,1,0,0],[0,0,1,0],[0,0,0,1]]"), "\"frames/0/transform_matrix/0/3\" must be a number"},
        {matrix("[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,1,1]]"), "last row"},
        {matrix("[[1,0,0,0],[0,1,0,0],[1,1,0,0],[0,0,0,1]]"), "singular"},
        {matrix("[[0,0,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,1]]"), "singular"},
        {matrix("[[1e200,0,0,0],[0,1e200,0,0],[0,0,1e200,0],[0,0,0,1]]"), "singular"},
        {matrix("[[-1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]]"), "mirrors"},
        {matrix("[[1,0.5,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]]"), "shears or stretches"},
        {matrix("[[2,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]]"), "shears or stretches"},
        {matrix("[[1,0,0,1e20],[0,1,0,0],[0,0,1,0],[0,0,0,1]]"), "too far away"},
    };
    for (const TransformsFault& fault : faults) {
        SCOPED_TRACE(fault.text);
        EXPECT_ERROR(transforms_of(fault.text), bad_file, fault.message);
    }
    std::string with_zero = file_text(good);
    with_zero += '\0';
    EXPECT_ERROR(transforms_of(with_zero), bad_file, "this is no JSON");
}

TEST(Transforms, KeepsToLimits) {
    Limits limits;
    limits.max_views = 1;
    EXPECT_ERROR(transforms_of(file_text(frame_text("a") + "," + frame_text("b")), limits), bad_file,
                 "the 1 that are read");
    limits.max_transforms = 40;
    EXPECT_ERROR(transforms_of(file_text(frame_text("a")), limits), bad_file, "more than 40 bytes");
}

TEST(Transforms, ErrorsNameTheFile) {
    const test::TemporaryFolder folder;
    test::write_file(folder / "transforms.json", "{\n]");
    EXPECT_ERROR(load_transforms(folder / "transforms.json"), bad_file, "transforms.json:2: column 1");
    EXPECT_ERROR(load_transforms(folder / "none.json"), bad_file, "none.json");
}

}  // namespace
}  // namespace stipple::io
