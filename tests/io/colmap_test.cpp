// Models of COLMAP, text and binary.
#include "stipple/io/colmap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace stipple::io {
namespace {

template <class Parse>
auto parse_part(std::string_view text, const Parse& parse, Limits limits = {}) {
    MemorySource source({reinterpret_cast<const std::byte*>(text.data()), text.size()});
    ByteReader reader(source, limits);
    return parse(reader);
}
auto cameras_of(std::string_view text, Limits limits = {}) {
    return parse_part(text, parse_colmap_cameras, limits);
}
auto images_of(std::string_view text, Limits limits = {}) {
    return parse_part(text, parse_colmap_images, limits);
}
ColmapModel points_of(std::string_view text, Limits limits = {}) {
    ColmapModel model;
    parse_part(
        text, [&](ByteReader& reader) { parse_colmap_points(reader, model); }, limits);
    return model;
}

/// Little-endian numbers one after the other.
template <class... Numbers>
std::string packed_numbers(Numbers... numbers) {
    std::string bytes;
    (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
    return bytes;
}

ColmapModel sample_model() {
    ColmapModel model;
    const Rng rng(7);
    uint64_t draw = 0;
    const auto number = [&] { return rng.uniform(draw++) - 0.5 + 1e-9; };
    for (const auto kind : {ColmapCameraModel::simple_pinhole, ColmapCameraModel::pinhole,
                            ColmapCameraModel::simple_radial, ColmapCameraModel::radial, ColmapCameraModel::opencv}) {
        ColmapCamera camera;
        camera.id = static_cast<uint32_t>(3 + 2 * model.cameras.size());
        camera.model = kind;
        camera.lens = {640, 480, 500 + number(), 0, 320 + number(), 240 + number()};
        const bool two = kind == ColmapCameraModel::pinhole || kind == ColmapCameraModel::opencv;
        camera.lens.fy = two ? 510 + number() : camera.lens.fx;
        if (kind >= ColmapCameraModel::simple_radial) camera.lens.k1 = number();
        if (kind >= ColmapCameraModel::radial) camera.lens.k2 = number();
        if (kind == ColmapCameraModel::opencv) camera.lens.p1 = number(), camera.lens.p2 = number();
        model.cameras.push_back(camera);
    }
    for (uint32_t i = 0; i < 6; ++i) {
        ColmapImage image;
        image.id = 10 + i;
        image.camera_id = model.cameras[i % 5].id;
        image.name = fmt::format("left/photo {}.jpg", i);
        std::array<double, 12> pose = {1, 0, 0, number(), 0, 1, 0, number(), 0, 0, 1, number()};
        set_pose(image, pose);
        double norm = 0;
        for (double& q : image.rotation) q = number(), norm += q * q;
        for (double& q : image.rotation) q /= std::sqrt(norm);
        model.images.push_back(image);
    }
    for (uint32_t i = 0; i < 20; ++i) {
        ColmapPoint point;
        point.id = i * 5 + 1;
        point.position = {1000 * number(), number(), number()};
        point.color = {static_cast<uint8_t>(i), 200, 255};
        point.error = std::abs(number());
        point.track_begin = static_cast<int64_t>(model.track.size());
        for (uint32_t k = 0; k < i % 4; ++k) model.track.push_back(10 + k);
        model.points.push_back(point);
    }
    return model;
}

void expect_same_model(const ColmapModel& a, const ColmapModel& b) {
    ASSERT_EQ(a.cameras.size(), b.cameras.size());
    for (size_t i = 0; i < a.cameras.size(); ++i) {
        EXPECT_EQ(a.cameras[i].id, b.cameras[i].id);
        EXPECT_EQ(a.cameras[i].model, b.cameras[i].model);
        EXPECT_EQ(std::memcmp(&a.cameras[i].lens, &b.cameras[i].lens, sizeof(Lens)), 0) << i;
    }
    ASSERT_EQ(a.images.size(), b.images.size());
    for (size_t i = 0; i < a.images.size(); ++i) {
        EXPECT_EQ(a.images[i].id, b.images[i].id);
        EXPECT_EQ(a.images[i].camera_id, b.images[i].camera_id);
        EXPECT_EQ(a.images[i].name, b.images[i].name);
        EXPECT_EQ(a.images[i].translation, b.images[i].translation);
        for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(a.images[i].rotation[k], b.images[i].rotation[k], 1e-15);
    }
    ASSERT_EQ(a.points.size(), b.points.size());
    EXPECT_EQ(a.track, b.track);
    for (size_t i = 0; i < a.points.size(); ++i) {
        EXPECT_EQ(a.points[i].id, b.points[i].id);
        EXPECT_EQ(a.points[i].position, b.points[i].position);
        EXPECT_EQ(a.points[i].color, b.points[i].color);
        EXPECT_EQ(a.points[i].error, b.points[i].error);
        EXPECT_EQ(a.points[i].track_begin, b.points[i].track_begin);
    }
}

TEST(Colmap, BothFormsComeBack) {
    const test::TemporaryFolder folder;
    const ColmapModel model = sample_model();
    ColmapForm form = ColmapForm::binary;
    EXPECT_FALSE(has_colmap(folder.path(), form));
    write_colmap_text(folder.path(), model, Overwrite::refuse);
    ASSERT_TRUE(has_colmap(folder.path(), form));
    EXPECT_EQ(form, ColmapForm::text);
    expect_same_model(load_colmap(folder.path(), form), model);
    write_colmap_binary(folder.path(), model, Overwrite::refuse);
    ASSERT_TRUE(has_colmap(folder.path(), form));
    EXPECT_EQ(form, ColmapForm::binary);
    expect_same_model(load_colmap(folder.path(), form), model);
    EXPECT_ERROR(write_colmap_text(folder.path(), model, Overwrite::refuse), cannot_write, "exists");
}

TEST(Colmap, ReadsWhatColmapWrites) {
    // As COLMAP 3.8 prints them: comments, a line of features that is empty, one that is not.
    const auto cameras = cameras_of(
        "# Camera list with one line of data per camera:\n#   CAMERA_ID, MODEL, WIDTH, HEIGHT\n"
        "# Number of cameras: 1\n1 SIMPLE_RADIAL 1600 1200 1437.5 800 600 -0.0125\n");
    ASSERT_EQ(cameras.size(), 1u);
    EXPECT_EQ(cameras[0].lens.width, 1600);
    EXPECT_EQ(cameras[0].lens.fy, 1437.5);
    EXPECT_EQ(cameras[0].lens.cx, 800);
    EXPECT_EQ(cameras[0].lens.k1, -0.0125);
    const auto images =
        images_of("# Image list\r\n1 0.5 0.5 0.5 0.5 1 2 3 1 a.jpg\r\n\r\n7 2 0 0 0 1 2 3 1 b.jpg\n1.5 2.5 -1 3 4 5\n");
    ASSERT_EQ(images.size(), 2u);
    EXPECT_EQ(images[0].name, "a.jpg");
    EXPECT_EQ(images[1].name, "b.jpg");
    EXPECT_EQ(images[1].rotation[0], 1);  // made of unit length
    const ColmapModel points =
        points_of("# x\n63390 1.67241 0.292931 0.609726 115 121 122 1.33927 16 6542 15 7345\n9 0 0 0 0 0 0 -1\n");
    ASSERT_EQ(points.points.size(), 2u);
    EXPECT_EQ(points.track_of(0).size(), 2u);
    EXPECT_EQ(points.track_of(0)[1], 15u);
    EXPECT_TRUE(points.track_of(1).empty());
}

TEST(Colmap, PosesLookWhereColmapsDo) {
    // x right, y down, z forward; the camera stands at (0, 0, -5) and looks along +z, its top towards -y.
    ColmapImage image;
    image.translation = {0, 0, 5};
    const std::array<double, 12> pose = pose_of(image);
    const std::array<double, 12> expected = {1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, -5};
    for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(pose[i], expected[i], 1e-15) << i;
    // Any pose comes back, and projects a point to the same place.
    const Rng rng(3);
    for (uint64_t trial = 0; trial < 200; ++trial) {
        double norm = 0;
        for (size_t k = 0; k < 4; ++k)
            image.rotation[k] =
                trial < 8 ? (k == trial % 4 ? 1 : 1e-9 * rng.normal(trial * 16 + k)) : rng.normal(trial * 16 + k);
        for (const double q : image.rotation) norm += q * q;
        for (double& q : image.rotation) q /= std::sqrt(norm);
        for (size_t k = 0; k < 3; ++k) image.translation[k] = 10.0 * rng.normal(trial * 16 + 4 + k);
        ColmapImage back;
        set_pose(back, pose_of(image));
        const auto a = pose_of(image), b = pose_of(back);
        for (size_t i = 0; i < 12; ++i) ASSERT_NEAR(a[i], b[i], 1e-12) << trial;
        for (size_t k = 0; k < 3; ++k) ASSERT_NEAR(back.translation[k], image.translation[k], 1e-12);
    }
}

TEST(Colmap, RefusesTextWithTheLine) {
    EXPECT_ERROR(cameras_of("1 PINHOLE 10 10 5 5 5\n"), bad_file,
                 "line 1: expected a number for a parameter of PINHOLE");
    EXPECT_ERROR(cameras_of("#\n1 PINHOLE 10 10 5 5 5 5 5\n"), bad_file, "PINHOLE has 4 parameters, found more: \"5\"");
    EXPECT_ERROR(cameras_of("1 FOV 10 10 5 5 5 5 5\n"), bad_file, "camera model FOV is not read");
    EXPECT_ERROR(cameras_of("1 OPENCV_FISHEYE 10 10\n"), bad_file, "camera model OPENCV_FISHEYE is not read");
    EXPECT_ERROR(cameras_of("1 ORTHO 10 10 5\n"), bad_file, "expected a camera model, found \"ORTHO\"");
    EXPECT_ERROR(cameras_of("1 PINHOLE 0 10 5 5 5 5\n"), bad_file, "0 x 10 pixels");
    EXPECT_ERROR(cameras_of("1 PINHOLE 99999 10 5 5 5 5\n"), bad_file, "the width, found \"99999\"");
    EXPECT_ERROR(cameras_of("1 PINHOLE 10 10 -5 5 5 5\n"), bad_file, "has the focal length -5");
    EXPECT_ERROR(cameras_of("1 PINHOLE 10 10 nan 5 5 5\n"), bad_file, "found \"nan\"");
    EXPECT_ERROR(cameras_of("1 PINHOLE 10 10 5 5 1e300 5\n"), bad_file, "has the parameter 1e+300");
    EXPECT_ERROR(cameras_of("1 PINHOLE 9 9 5 5 5 5\n1 PINHOLE 9 9 5 5 5 5\n"), bad_file, "camera 1 stands twice");
    EXPECT_ERROR(cameras_of("-1 PINHOLE 9 9 5 5 5 5\n"), bad_file, "the camera's id, found \"-1\"");
    EXPECT_ERROR(images_of("1 0 0 0 0 1 2 3 1 a.jpg\n\n"), bad_file, "rotation of length 0");
    EXPECT_ERROR(images_of("1 1 0 0 0 1 2 inf 1 a.jpg\n\n"), bad_file, "found \"inf\"");
    EXPECT_ERROR(images_of("1 1 0 0 0 1 2 3 1\n\n"), bad_file, "names no file");
    EXPECT_ERROR(images_of("1 1 0 0 0 1 2 3 1 ../a.jpg\n\n"), bad_file, "leads out of the folder");
    EXPECT_ERROR(images_of("1 1 0 0 0 1 2 3 1 /a.jpg\n\n"), bad_file, "is an absolute path");
    EXPECT_ERROR(images_of("1 1 0 0 0 1 2 3 1 a\n\n1 1 0 0 0 1 2 3 1 b\n\n"), bad_file, "image 1 stands twice");
    EXPECT_ERROR(images_of("1 1 0 0 0 1 2 3 1 a\n2 1 0 0 0 1 2 3 1 b\n"), bad_file,
                 "line 2: expected the features of image 1");
    EXPECT_ERROR(points_of("1 0 0 0 0 0 256 1\n"), bad_file, "a colour of 8 bits, found \"256\"");
    EXPECT_ERROR(points_of("1 0 0 1e30 0 0 0 1\n"), bad_file, "has the coordinate 1e+30");
    EXPECT_ERROR(points_of("1 0 0 0 0 0 0 1 5\n"), bad_file, "a feature of the track");
    EXPECT_ERROR(points_of("1 0 0 0 0 0 0 1\n1 0 0 0 0 0 0 1\n"), bad_file, "point 1 stands twice");
}

TEST(Colmap, CountsThatLieAllocateNothing) {
    const std::string huge = packed_numbers(uint64_t{1} << 40), many = packed_numbers(uint64_t{1000000});
    EXPECT_ERROR(cameras_of(huge), bad_file, "at most");
    EXPECT_ERROR(cameras_of(many), bad_file, "the file has 0");
    EXPECT_ERROR(images_of(huge), bad_file, "at most");
    EXPECT_ERROR(images_of(many), bad_file, "the file has 0");
    EXPECT_ERROR(points_of(huge), bad_file, "at most");
    EXPECT_ERROR(points_of(many), bad_file, "the file has 0");
    const std::string image = packed_numbers(uint64_t{1}, uint32_t{1}, 1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, uint32_t{1}) +
                              std::string("a\0", 2);
    EXPECT_ERROR(images_of(image + packed_numbers(uint64_t{1} << 60)), bad_file, "features, at most");
    EXPECT_ERROR(images_of(image + packed_numbers(uint64_t{1000})), bad_file, "the file has 0");
    EXPECT_EQ(images_of(image + packed_numbers(uint64_t{1}, 1.0, 2.0, int64_t{-1})).size(), 1u);
    EXPECT_ERROR(images_of(image + packed_numbers(uint64_t{0}, 1.0)), bad_file, "more follows");
    const std::string point = packed_numbers(uint64_t{1}, uint64_t{1}, 1.0, 2.0, 3.0) + std::string("\1\2\3", 3);
    EXPECT_ERROR(points_of(point + packed_numbers(1.0, uint64_t{1} << 50)), bad_file, "a track of");
    EXPECT_ERROR(points_of(point + packed_numbers(1.0, uint64_t{9})), bad_file, "the file has 0");
    const std::string camera = packed_numbers(uint64_t{1}, uint32_t{1});
    const std::string rest = packed_numbers(int64_t{8}, int64_t{8}, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0);
    EXPECT_ERROR(cameras_of(camera + packed_numbers(int32_t{6}) + rest), bad_file,
                 "camera model FULL_OPENCV is not read");
    EXPECT_ERROR(cameras_of(camera + packed_numbers(int32_t{77}) + rest), bad_file, "camera model 77 is not known");
    EXPECT_ERROR(cameras_of(camera + packed_numbers(int32_t{-1}) + rest), bad_file, "camera model -1 is not known");
    EXPECT_EQ(cameras_of(camera + packed_numbers(int32_t{4}) + rest).size(), 1u);
}

TEST(Colmap, EveryCutIsRefused) {
    const ColmapModel model = sample_model();
    for (const auto write : {write_colmap_cameras, write_colmap_images, write_colmap_points}) {
        MemorySink sink;
        write(model, ColmapForm::binary, sink);
        const std::string whole(reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size());
        for (size_t length = 2; length < whole.size(); ++length) {
            const std::string_view cut = std::string_view(whole).substr(0, length);
            EXPECT_THROW(write == write_colmap_cameras  ? static_cast<void>(cameras_of(cut))
                         : write == write_colmap_images ? static_cast<void>(images_of(cut))
                                                        : static_cast<void>(points_of(cut)),
                         Error)
                << length;
        }
    }
}

TEST(Colmap, ModelsMustFitTogether) {
    const test::TemporaryFolder folder;
    ColmapModel model = sample_model();
    model.images[2].camera_id = 99;
    write_colmap_binary(folder.path(), model, Overwrite::allow);
    EXPECT_ERROR(load_colmap(folder.path(), ColmapForm::binary), bad_file,
                 "images.bin: image \"left/photo 2.jpg\" is of camera 99");
    model = sample_model();
    model.images[2].name = model.images[4].name;
    write_colmap_text(folder.path(), model, Overwrite::allow);
    EXPECT_ERROR(load_colmap(folder.path(), ColmapForm::text), bad_file, "two images are named \"left/photo 4.jpg\"");
    model.images[2].name = "a\nb";
    EXPECT_ERROR(write_colmap_text(folder.path(), model, Overwrite::allow), bad_argument,
                 "a name that COLMAP cannot hold");
    std::filesystem::remove(folder / "points3D.txt");
    EXPECT_ERROR(load_colmap(folder.path(), ColmapForm::text), bad_file, "points3D.txt");
    test::write_file(folder / "cameras.bin", "# text");
    EXPECT_ERROR(load_colmap(folder.path(), ColmapForm::binary), bad_file, "begins with a count of 8 bytes");
}

}  // namespace
}  // namespace stipple::io
