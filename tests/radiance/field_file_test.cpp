#include <cmath>
#include <cstring>
#include <limits>

#include "stipple/io/safetensors.h"
#include "stipple/radiance/field/dense_field.h"
#include "tests/support/expect_error.h"
#include "tests/support/radiance_fields.h"
#include "tests/support/temporary_folder.h"

namespace stipple::radiance {
namespace {

using test::TemporaryFolder;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Field some_field() {
    DenseField dense = test::random_field({11, 9, 14}, {{-1, -0.5f, 2}, {1, 1.25f, 4}}, 0.01f, 3);
    dense.voxel_ratio = 0.7f;
    dense.near = 0.25f;
    dense.least_weight = 1e-5f;
    dense.background = Background::black;
    dense.origin = {500000.5, -3, 1e-3};
    dense.notes = {{"seed", "7"}, {"scene", "a \"name\" of\nlines"}};
    dense.cameras = test::cameras_about({0, 0, 3}, 4, 3, 20);
    return pack(dense);
}

void expect_equal(const Field& a, const Field& b) {
    EXPECT_EQ(a.grid.size, b.grid.size);
    EXPECT_EQ(std::memcmp(&a.grid.box, &b.grid.box, sizeof a.grid.box), 0);
    EXPECT_EQ(a.grid.voxel, b.grid.voxel);
    EXPECT_EQ(a.density_shift, b.density_shift);
    EXPECT_EQ(a.voxel_ratio, b.voxel_ratio);
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(a.least_weight, b.least_weight);
    EXPECT_EQ(a.near, b.near);
    EXPECT_EQ(a.background, b.background);
    EXPECT_EQ(a.environment.side, b.environment.side);
    EXPECT_EQ(a.environment.texels, b.environment.texels);
    EXPECT_EQ(a.origin, b.origin);
    EXPECT_EQ(a.notes, b.notes);
    EXPECT_EQ(a.brick, b.brick);
    EXPECT_EQ(a.occupied, b.occupied);
    EXPECT_EQ(a.density, b.density);
    EXPECT_EQ(a.features, b.features);
    EXPECT_EQ(a.network.weight1, b.network.weight1);
    EXPECT_EQ(a.network.bias1, b.network.bias1);
    EXPECT_EQ(a.network.weight2, b.network.weight2);
    EXPECT_EQ(a.network.bias2, b.network.bias2);
    EXPECT_EQ(a.network.weight3, b.network.weight3);
    EXPECT_EQ(a.network.bias3, b.network.bias3);
    ASSERT_EQ(a.cameras.size(), b.cameras.size());
    for (size_t i = 0; i < a.cameras.size(); ++i)
        EXPECT_EQ(std::memcmp(&a.cameras[i], &b.cameras[i], sizeof(Camera)), 0) << i;
}

TEST(FieldFile, ReadsWhatItWrote) {
    TemporaryFolder folder;
    const Field field = some_field();
    ASSERT_GT(field.stored_bricks(), 1);
    save_field(folder / "a.field", field, Overwrite::refuse);
    EXPECT_TRUE(is_field_file(folder / "a.field"));
    expect_equal(load_field(folder / "a.field"), field);
    EXPECT_ERROR(save_field(folder / "a.field", field, Overwrite::refuse), cannot_write, "exists already");

    Field plain = field;  // without network, cameras and notes
    plain.network = {};
    plain.cameras.clear();
    plain.notes.clear();
    save_field(folder / "a.field", plain, Overwrite::allow);
    expect_equal(load_field(folder / "a.field"), plain);

    Field learned = field;
    learned.background = Background::learned;
    learned.environment = {4, std::vector<float>(4 * 4 * 3, 0.25f)};
    save_field(folder / "learned.field", learned, Overwrite::refuse);
    expect_equal(load_field(folder / "learned.field"), learned);

    const Field nothing = pack(test::empty_field({5, 6, 7}, {{0, 0, 0}, {1, 1, 1}}));
    EXPECT_EQ(nothing.stored_bricks(), 0);
    save_field(folder / "nothing.field", nothing, Overwrite::refuse);
    expect_equal(load_field(folder / "nothing.field"), nothing);
}

TEST(FieldFile, RefusesToSaveWhatItWouldNotLoad) {
    TemporaryFolder folder;
    const std::string path = folder / "a.field";
    const auto refused = [&](const char* text, const auto& change) {
        Field field = some_field();
        change(field);
        EXPECT_ERROR(save_field(path, field, Overwrite::refuse), bad_argument, text);
    };
    refused("size: 1", [](Field& f) { f.grid.size[1] = 1; });
    refused("box: ", [](Field& f) { f.grid.box.high[2] = f.grid.box.low[2]; });
    refused("box: ", [](Field& f) { f.grid.box.low[0] = kNan; });
    refused("voxel: ", [](Field& f) { f.grid.voxel = 0; });
    refused("step: ", [](Field& f) { f.step = 1e-9f; });
    refused("near: not finite", [](Field& f) { f.near = kNan; });
    refused("voxel_ratio: ", [](Field& f) { f.voxel_ratio = -1; });
    refused("least_weight: ", [](Field& f) { f.least_weight = -1; });
    refused("origin: ", [](Field& f) { f.origin[1] = std::numeric_limits<double>::infinity(); });
    refused("brick: ", [](Field& f) { f.brick.pop_back(); });
    refused("density: ", [](Field& f) { f.density.pop_back(); });
    refused("density: ", [](Field& f) { f.density[5] = kNan; });
    refused("features: ", [](Field& f) { f.features[5] = 0x7c00; });
    refused("features: ", [](Field& f) { f.features.pop_back(); });
    refused("occupied: ", [](Field& f) { f.occupied.pop_back(); });
    refused("network.bias2: 0 values", [](Field& f) { f.network.bias2.clear(); });
    refused("network.weight3: a value", [](Field& f) { f.network.weight3[7] = kNan; });
    refused("environment: none", [](Field& f) { f.background = Background::learned; });
    refused("environment: the background", [](Field& f) { f.environment = {2, std::vector<float>(12)}; });
    refused("environment: 11 values", [](Field& f) {
        f.background = Background::learned;
        f.environment = {2, std::vector<float>(11)};
    });
    refused("environment: a value", [](Field& f) {
        f.background = Background::learned;
        f.environment = {2, std::vector<float>(12, kNan)};
    });
    refused("camera 2", [](Field& f) { f.cameras[2].fx = 0; });
    refused("camera 1", [](Field& f) { f.cameras[1].width = 0; });
    refused("camera 0", [](Field& f) { f.cameras[0].to_world[11] = kNan; });
    EXPECT_TRUE(folder.entries().empty());
}

// A good file, changed, written again.
class HostileField : public ::testing::Test {
protected:
    void SetUp() override {
        save_field(path_, some_field(), Overwrite::refuse);
        good_ = io::load_safetensors(path_);
    }
    io::Tensor& tensor(std::string_view name) { return const_cast<io::Tensor&>(*io::find(good_, name)); }
    void expect_refused(const std::string& text) {
        io::save_safetensors(path_, good_, Overwrite::allow);
        EXPECT_ERROR(load_field(path_), bad_file, text);
        EXPECT_ERROR(load_field(path_), bad_file, "a.field");
        save_field(path_, some_field(), Overwrite::allow);
        good_ = io::load_safetensors(path_);
    }
    int32_t* bricks() { return reinterpret_cast<int32_t*>(tensor("brick").data.data()); }

    TemporaryFolder folder_;
    const std::string path_ = folder_ / "a.field";
    io::TensorFile good_;
};

TEST_F(HostileField, Numbers) {
    const auto text = [&](const char* key, const char* value, const char* message) {
        good_.metadata[key] = value;
        expect_refused(message);
    };
    text("stipple.kind", "radiance field 2", "expected 'radiance field 1'");
    text("size", "11 9", "'size'");
    text("size", "11 9 14 2", "'size'");
    text("size", "11 9 99999999999", "2 to 2048");
    text("size", "11 9 2.5", "2 to 2048");
    text("size", "-4 9 14", "2 to 2048");
    text("size", "2048 2048 2048", "tensor 'brick'");
    text("box", "0 0 0 1 1 nan", "'box'");
    text("box", "0 0 0 1 1 -1", "box: ");
    text("box", "0 0 0 1 1 1e300", "box: ");
    text("voxel", "0", "voxel: ");
    text("voxel", "", "'voxel'");
    text("step", "1e-30", "step: ");
    text("background", "green", "background");
    text("origin", "0 0 x", "'origin'");
    for (const char* key : {"size", "box", "voxel", "near", "step", "origin", "background", "density_shift"}) {
        good_.metadata.erase(key);
        expect_refused(key);
    }
    good_.metadata.erase("stipple.kind");
    expect_refused("something else");
}

TEST_F(HostileField, Environments) {
    const auto add = [&](std::vector<int64_t> shape, DType dtype = DType::f32) {
        int64_t bytes = 4;
        for (const int64_t extent : shape) bytes *= extent;
        io::Tensor tensor{"environment", dtype, std::move(shape), Buffer(bytes)};
        if (bytes > 0) std::memset(tensor.data.data(), 0, static_cast<size_t>(bytes));
        good_.tensors.push_back(std::move(tensor));
        good_.metadata["background"] = "learned";
    };
    good_.metadata["background"] = "learned";
    expect_refused("environment: none");
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{4, 4}, {4, 4, 4}, {3, 4, 4, 1}}) {
        add(shape);
        expect_refused("tensor 'environment'");
    }
    add({4, 4, 3}, DType::i32);
    expect_refused("tensor 'environment'");
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{4, 5, 3}, {0, 0, 3}, {1, 1, 3}, {1025, 1025, 3}}) {
        add(shape);
        expect_refused("environment: ");
    }
    add({4, 4, 3});
    const float nan = kNan;
    std::memcpy(good_.tensors.back().data.data(), &nan, sizeof nan);
    expect_refused("environment: a value");
    add({4, 4, 3});
    good_.metadata["background"] = "white";
    expect_refused("environment: the background");
}

TEST_F(HostileField, BrickNumbers) {
    const auto stored = static_cast<int32_t>(some_field().stored_bricks());
    int32_t* first = bricks();
    while (*first < 0) ++first;
    *first = stored;
    expect_refused("brick: number");
    first = bricks();
    while (*first < 0) ++first;
    *first = -2;
    expect_refused("brick: number -2");
    first = bricks();
    while (*first < 0) ++first;
    *first = std::numeric_limits<int32_t>::min();
    expect_refused("brick: number");
    first = bricks();
    while (*first != 1) ++first;
    *first = 0;
    expect_refused("used twice");
    first = bricks();
    while (*first != 1) ++first;
    *first = -1;
    expect_refused("used nowhere");
}

TEST_F(HostileField, Tensors) {
    for (const char* name : {"brick", "occupied", "density", "features", "network.bias3"}) {
        std::erase_if(good_.tensors, [&](const io::Tensor& t) { return t.name == name; });
        expect_refused(name);
        tensor(name).shape.insert(tensor(name).shape.begin(), 1);
        expect_refused(name);
    }
    for (const char* name : {"density", "features", "network.weight2", "cameras"}) {
        std::memset(tensor(name).data.data() + 8, 0xff, 4);
        expect_refused(name);
    }
    tensor("features").dtype = DType::bf16;
    expect_refused("expected float16");
    tensor("cameras").shape = {18, 3};
    expect_refused("expected float32 [n, 18]");
    const float huge = 3e9f;
    std::memcpy(tensor("cameras").data.data(), &huge, 4);
    expect_refused("cameras: a picture of 0");
}

TEST_F(HostileField, TruncatedAndOtherFiles) {
    const std::string bytes = test::read_file(path_);
    for (size_t length = 0; length < bytes.size(); length += length < 4096 ? 61 : bytes.size() / 23) {
        test::write_file(path_, std::string_view(bytes).substr(0, length));
        EXPECT_ERROR(load_field(path_), bad_file, "a.field");
    }
    EXPECT_FALSE(is_field_file(path_ + "x"));
    test::write_file(path_, "ply\n");
    EXPECT_FALSE(is_field_file(path_));
    EXPECT_ERROR(load_field(path_), bad_file, "no radiance field: ");
    EXPECT_ERROR(load_field(folder_ / "none.field"), bad_file, "none.field");
}

// Single bytes anywhere: an error with the file's name or a field without fault, never anything else.
TEST_F(HostileField, ChangedBytes) {
    const std::string bytes = test::read_file(path_);
    const Rng rng(5);
    int refused = 0;
    for (uint64_t i = 0; i < 400; ++i) {
        std::string changed = bytes;
        const size_t range = i % 2 ? 2000 : bytes.size();  // the header and the brick numbers as often as all the rest
        changed[rng.below(2 * i, static_cast<uint32_t>(range))] = static_cast<char>(rng.bits(2 * i + 1));
        test::write_file(path_, changed);
        try {
            EXPECT_EQ(fault_of(load_field(path_)), "");
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_file) << error.what();
            ++refused;
        }
    }
    EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace stipple::radiance
