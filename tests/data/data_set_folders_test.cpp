// Folders of clouds and meshes by class, pairs of sparse and dense clouds, and how layouts are told apart.

#include <cmath>

#include "tests/data/data_set_files.h"
#include "tests/support/data_sets.h"

namespace stipple::data {
namespace {

class ClassFolderSet : public DataSetTest {
protected:
    static constexpr const char* kMesh = "OFF\n3 1 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n";

    /// The first corner moved by the seed, so that a test sees which seed it was.
    static PointCloud sample(const Mesh& mesh, int64_t points, uint64_t seed) {
        STIPPLE_REQUIRE(seed != 7, "no area");
        PointCloud cloud(points);
        for (int64_t i = 0; i < 3 * points; ++i)
            cloud.positions.data()[i] = mesh.vertices.positions.data()[i % 3] + static_cast<float>(seed);
        return cloud;
    }
};

TEST_F(ClassFolderSet, WithoutSplits) {
    write("lamp/b.xyz", "1 2 3\n4 5 6\n");
    write("lamp/a.xyzn", "7 8 9 0 0 1\n");
    write("chair/c.csv", "x,y,z\n1,1,1\n");
    write("chair/.hidden.xyz", "no cloud");
    write("notes/readme.md", "no class");
    const DataSet set = load();
    EXPECT_EQ(set.layout, "class-folders");
    EXPECT_EQ(set.split, "all");
    EXPECT_EQ(set.classes, (std::vector<std::string>{"chair", "lamp"}));
    EXPECT_EQ(set.labels, (std::vector<int32_t>{0, 1, 1}));
    EXPECT_EQ(set.names, (std::vector<std::string>{"chair/c", "lamp/a", "lamp/b"}));
    EXPECT_EQ(set.clouds.points, (std::vector<float>{1, 1, 1, 7, 8, 9, 1, 2, 3, 4, 5, 6}));
    EXPECT_TRUE(set.normals.empty());
    ASSERT_EQ(warnings.size(), 1u);
    expect_in(warnings[0], "1 of 3 items have normals: left out");
    expect_in(error({.split = "train"}), "no split train; there are: all");
}

TEST_F(ClassFolderSet, WithSplitsAboveOrBelow) {
    for (const char* name : {"first/train/lamp/a.xyz", "first/test/chair/a.xyz", "second/lamp/train/a.xyz",
                             "second/chair/test/a.xyz", "second/chair/test/b.xyz"})
        write(name, "1 2 3\n");
    for (const char* order : {"first", "second"}) {
        const std::string path = folder / order;
        EXPECT_EQ(recognise_data_set(path).splits, (std::vector<std::string>{"train", "test"}));
        const DataSet train = load_data_set(path, {.split = "train"}, warnings);
        EXPECT_EQ(train.classes, (std::vector<std::string>{"chair", "lamp"}));  // of both splits
        EXPECT_EQ(train.labels, (std::vector<int32_t>{1}));
    }
    EXPECT_EQ(load_data_set(folder / "second", {.split = "test"}, warnings).labels, (std::vector<int32_t>{0, 0}));
}

TEST_F(ClassFolderSet, SamplesMeshes) {
    write("tri/a.off", kMesh);
    write("tri/b.off", kMesh);
    expect_in(error(), "bad_file: " + (folder / "tri/a.off") + ": is a mesh");
    const DataSet set = load({.points = 5, .sampler = sample, .seed = 10});
    EXPECT_EQ(set.clouds.common_size(), 5);
    EXPECT_EQ(set.points_of(0)(4, 0), 11);
    EXPECT_EQ(set.points_of(1)(0, 0), 12);
    EXPECT_EQ(load({.sampler = sample}).clouds.common_size(), 2048);
    expect_in(error({.sampler = sample, .seed = 6}),
              (folder / "tri/b.off") + ": its surface cannot be sampled: no area");
}

TEST_F(ClassFolderSet, RefusesWhatIsWrong) {
    write("lamp/a.ply",
          "ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nproperty float y\n"
          "property float z\nend_header\n");
    expect_in(error(), "bad_file: " + (folder / "lamp/a.ply") + ": a cloud without points");
    write("lamp/a.ply", "junk");
    expect_in(error(), "bad_file: " + (folder / "lamp/a.ply"));
    std::filesystem::remove(folder / "lamp/a.ply");
    write("lamp/a.xyz", "1 2 3\n1 inf 3\n");
    expect_in(error(), (folder / "lamp/a.xyz") + ": point 1 is not finite");
    std::filesystem::remove(folder / "lamp/a.xyz");
    const std::string nothing = error();
    expect_in(nothing, "bad_file: " + folder.path() + ": no data set of a known layout looked for a file .stpk");
    for (const LayoutInfo& layout : layouts()) expect_in(nothing, std::string(layout.files));
    EXPECT_THROW(load_data_set(folder / "none", {}, warnings), Error);
}

TEST(Layouts, AreRowsOfTheirPage) {
    const std::string page = test::read_file(std::string(STIPPLE_SOURCE_DIR) + "/docs/data.md");
    size_t last = 0;
    for (const LayoutInfo& layout : layouts()) {
        const size_t row = page.find("\n| `" + std::string(layout.name) + "` |");
        ASSERT_NE(row, std::string::npos) << layout.name;
        EXPECT_GT(row, last) << layout.name << " is out of order";
        last = row;
    }
    EXPECT_EQ(layouts().size(), 11u);
}

class PairSet : public DataSetTest {};

TEST_F(PairSet, OfFoldersGoByName) {
    write("input_2/a.xyz", "1 2 3\n4 5 6\n");
    write("gt_4/a.xyz", "1 2 3\n4 5 6\n7 8 9\n");
    write("meshes/a.off", "junk");
    const DataSet set = load();
    EXPECT_EQ(set.layout, "pair-folders");
    ASSERT_TRUE(set.is_pairs());
    EXPECT_EQ(set.names, (std::vector<std::string>{"a"}));
    EXPECT_EQ(set.clouds.size_of(0), 2);
    EXPECT_EQ(set.targets.points, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
    expect_in(error({.points = 1}), "bad_argument");
    write("input_2/b.xyz", "1 2 3\n");
    expect_in(error(), "a file is missing for 1 of 2 predictions: b");
    write("gt_8/a.xyz", "1 2 3\n");  // which one?
    expect_in(error({.layout = "pair-folders"}), "no data set of layout pair-folders");
}

TEST_F(PairSet, OfTheDevelopmentSet) {
    STIPPLE_NEEDS_DATA("upsample_dev");
    const DataSet set = load_data_set(*test::data_file("upsample_dev"), {}, warnings);
    EXPECT_EQ(set.size(), 14);
    EXPECT_EQ(set.clouds.common_size(), 2048);
    EXPECT_EQ(set.targets.common_size(), 8192);
}

#ifdef STIPPLE_WITH_HDF5
class PatchSet : public DataSetTest {
protected:
    /// Values count up from `first`.
    static io::NamedArray patches(const std::string& name, std::array<int64_t, 3> shape, float first = 0) {
        io::NamedArray array{name, Array<float, 3>(shape)};
        for (float& value : array.values.span()) value = first++;
        return array;
    }
    template <class... Arrays>
    void save_patches(const std::string& name, Arrays... arrays) {
        io::NamedArray list[] = {std::move(arrays)...};
        io::save_hdf5_arrays(folder / name, list, Overwrite::allow);
    }
};

TEST_F(PatchSet, AreSparseAndDense) {
    save_patches("a.h5", patches("poisson_4", {2, 4, 6}), patches("poisson_2", {2, 2, 3}, 100),
                 patches("w", {1, 1, 1}));
    write("notes.h5", "no HDF5");
    const DataSet set = load();
    EXPECT_EQ(set.layout, "patches-hdf5");
    EXPECT_EQ(set.split, "all");
    EXPECT_EQ(set.size(), 2);
    EXPECT_EQ(set.clouds.points, (std::vector<float>{100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111}));
    EXPECT_EQ(set.targets.common_size(), 4);
    EXPECT_EQ(set.targets.of(1)(0, 0), 24);  // three of six columns
    EXPECT_EQ(set.targets.of(1)(1, 2), 32);
    EXPECT_EQ(load_data_set(folder / "a.h5", {}, warnings).size(), 2);
    save_patches("b.h5", patches("input", {1, 2, 3}), patches("gt", {1, 5, 3}));
    EXPECT_EQ(load_data_set(folder / "b.h5", {}, warnings).targets.common_size(), 5);
    expect_in(error(), "bad_argument: " + folder.path() + ": has 2 files of patches");
}

TEST_F(PatchSet, OfSeveralSizesNeedARatio) {
    save_patches("a.h5", patches("poisson_2", {1, 2, 3}), patches("poisson_4", {1, 4, 3}),
                 patches("poisson_8", {1, 8, 3}));
    expect_in(error(),
              "bad_argument: " + (folder / "a.h5") + ": has several sizes of patches: poisson_2, poisson_4, poisson_8");
    EXPECT_EQ(load({.ratio = 2}).targets.common_size(), 4);
    EXPECT_EQ(load({.ratio = 4}).targets.common_size(), 8);
    expect_in(error({.ratio = 3}), "has no patches 3 times as dense");
}

TEST_F(PatchSet, RefusesWhatIsWrong) {
    const io::NamedArray dense = patches("poisson_4", {2, 4, 3});
    const auto with = [&](io::NamedArray sparse, const std::string& message) {
        save_patches("a.h5", std::move(sparse), io::NamedArray{dense.name, dense.values.clone()});
        expect_in(error(), message);
    };
    with(patches("poisson_2", {1, 2, 3}), "1 patches of poisson_2 and 2 of poisson_4");
    with(patches("poisson_2", {2, 3, 3}), "poisson_2: must be [m, 2, 3] or with more columns, got [2, 3, 3]");
    with(patches("poisson_2", {2, 2, 2}), "poisson_2: must be [m, 2, 3] or with more columns, got [2, 2, 2]");
    with(patches("poisson_2", {2, 2, 3}, NAN), "poisson_2[0]: point 0 is not finite");
    with(patches("poison_2", {2, 2, 3}), "no data set of a known layout");
    write("a.h5", "no HDF5");
    EXPECT_THROW(load_data_set(folder / "a.h5", {}, warnings), Error);
}
#endif

TEST(DataSetClouds, UnitSpheres) {
    Clouds clouds;
    clouds.points = {1, 2, 3, 3, 2, 3, 5, 5, 5};
    clouds.offsets = {0, 2, 3};
    to_unit_spheres(clouds);
    EXPECT_EQ(clouds.points, (std::vector<float>{-1, 0, 0, 1, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace stipple::data
