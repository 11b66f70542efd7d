#include "stipple/io/hdf5.h"

#include <numeric>

#include "tests/io/binary_samples.h"
#include "tests/support/python.h"

namespace stipple::test {
namespace {

io::CloudSet sample(int64_t m, int64_t n) {
    io::CloudSet set;
    set.points = Array<float, 3>({m, n, 3});
    set.normals = Array<float, 3>({m, n, 3});
    set.parts = Array<int32_t, 2>({m, n});
    for (int64_t i = 0; i < m * n * 3; ++i) {
        set.points.data()[i] = static_cast<float>(i) / 7;
        set.normals.data()[i] = static_cast<float>(-i);
    }
    for (int64_t i = 0; i < m * n; ++i) set.parts.data()[i] = static_cast<int32_t>(i % 50);
    for (int64_t i = 0; i < m; ++i) {
        set.labels.push_back(1000 * i);
        set.names.push_back("shape " + std::to_string(i));
    }
    return set;
}

template <class T, int Rank>
void expect_equal_arrays(const Array<T, Rank>& a, const Array<T, Rank>& b) {
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_TRUE(std::equal(a.span().begin(), a.span().end(), b.span().begin()));
}

void expect_equal_sets(const io::CloudSet& a, const io::CloudSet& b) {
    expect_equal_arrays(a.points, b.points);
    expect_equal_arrays(a.normals, b.normals);
    expect_equal_arrays(a.parts, b.parts);
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_EQ(a.names, b.names);
}

std::string refusal_of(const std::string& path) {
    try {
        io::load_hdf5(path);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file);
        return error.what();
    }
    ADD_FAILURE() << path << " is accepted";
    return "";
}

TEST(Hdf5, ReadsWhatItWrites) {
    const TemporaryFolder folder;
    const io::CloudSet set = sample(5, 64);
    io::save_hdf5(folder / "a.h5", set, Overwrite::refuse);
    expect_equal_sets(io::load_hdf5(folder / "a.h5"), set);
    io::CloudSet bare;
    bare.points = Array<float, 3>({1, 2, 3});
    std::fill_n(bare.points.data(), 6, 2.0f);
    EXPECT_THROW(io::save_hdf5(folder / "a.h5", bare, Overwrite::refuse), Error);
    expect_equal_sets(io::load_hdf5(folder / "a.h5"), set);
    io::save_hdf5(folder / "a.h5", bare, Overwrite::allow);
    expect_equal_sets(io::load_hdf5(folder / "a.h5"), bare);
    bare.labels = {1, 2};
    EXPECT_THROW(io::save_hdf5(folder / "b.h5", bare, Overwrite::refuse), Error);
    EXPECT_FALSE(std::filesystem::exists(folder / "b.h5"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Hdf5, OneOfManyClouds) {
    const TemporaryFolder folder;
    io::save_hdf5(folder / "a.h5", sample(5, 64), Overwrite::refuse);
    io::Warnings warnings;
    io::ReadOptions options;
    try {
        io::load_hdf5_cloud(folder / "a.h5", options, warnings);
        ADD_FAILURE();
    } catch (const Error& error) {
        expect_contains(error.what(), "a.h5: holds 5 clouds; choose one with --item 0..4");
    }
    options.item = 3;
    const Mesh mesh = io::load_hdf5_cloud(folder / "a.h5", options, warnings);
    EXPECT_TRUE(warnings.empty());
    EXPECT_EQ(mesh.vertices.size(), 64);
    EXPECT_EQ(mesh.vertices.positions.data()[0], static_cast<float>(3 * 64 * 3) / 7);
    EXPECT_EQ(find(mesh.vertices.attributes, "label")->value(5), (3 * 64 + 5) % 50);
    EXPECT_EQ(find(mesh.vertices.attributes, "normal")->value(1, 2), -(3 * 64 * 3 + 5));
    options.item = 5;
    EXPECT_THROW(io::load_hdf5_cloud(folder / "a.h5", options, warnings), Error);
    io::save_hdf5(folder / "one.h5", sample(1, 10), Overwrite::refuse);
    EXPECT_EQ(io::load_hdf5_cloud(folder / "one.h5", {}, warnings).vertices.size(), 10);
}

TEST(Hdf5, OneCloudRoundTrips) {
    const TemporaryFolder folder;
    Mesh mesh = dyadic_cloud(30);
    auto& a = mesh.vertices.attributes;
    a.push_back(make_attribute<int32_t>("label", 30, 1, [](int64_t i) { return static_cast<int32_t>(i); }));
    a.push_back(make_attribute<float>("normal", 30, 3, [](int64_t i) { return static_cast<float>(i); }));
    io::Warnings warnings;
    io::save_hdf5_cloud(folder / "a.h5", mesh, Overwrite::refuse, warnings);
    expect_equal(io::load_hdf5_cloud(folder / "a.h5", {}, warnings), mesh);
    EXPECT_TRUE(warnings.empty());
    a.erase(a.begin());
    a.push_back(make_attribute<uint8_t>("label", 30, 1, [](int64_t) { return uint8_t{3}; }));
    a.push_back(make_attribute<double>("time", 30, 1, [](int64_t) { return 3.0; }));
    io::save_hdf5_cloud(folder / "a.h5", mesh, Overwrite::allow, warnings);
    ASSERT_EQ(warnings.size(), 2u);
    EXPECT_EQ(warnings[0], "HDF5: label is read back as int32, not uint8");
    EXPECT_EQ(warnings[1], "HDF5 cannot hold attribute time: dropped");
}

TEST(Hdf5, DatasetsByName) {
    const TemporaryFolder folder;
    io::NamedArray arrays[] = {{"poisson_4", Array<float, 3>({2, 4, 6})}, {"a", Array<float, 3>({1, 1, 1})}};
    std::iota(arrays[0].values.data(), arrays[0].values.data() + 48, 0.5f);
    arrays[1].values.data()[0] = 7;
    io::save_hdf5_arrays(folder / "a.h5", arrays, Overwrite::refuse);
    EXPECT_EQ(io::list_hdf5(folder / "a.h5"), (std::vector<std::string>{"a", "poisson_4"}));
    expect_equal_arrays(io::load_hdf5_array(folder / "a.h5", "poisson_4"), arrays[0].values);
    expect_contains(refusal_of(folder / "a.h5"), "has no dataset data");
    const auto refused = [&](const std::string& path, const std::string& name, const io::Limits& limits = {}) {
        try {
            io::load_hdf5_array(path, name, limits);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    expect_contains(refused(folder / "a.h5", "b"), "has no dataset b");
    io::Limits limits;
    limits.max_inflated = 48 * 4 - 1;
    expect_contains(refused(folder / "a.h5", "poisson_4", limits), "exceeds the limit of 191 bytes, got [2, 4, 6]");
    io::CloudSet labels = sample(2, 3);
    io::save_hdf5(folder / "b.h5", labels, Overwrite::refuse);
    expect_contains(refused(folder / "b.h5", "label"), "label: must hold floats");
    io::NamedArray empty[] = {{"none", Array<float, 3>({0, 4, 3})}};
    EXPECT_THROW(io::save_hdf5_arrays(folder / "c.h5", empty, Overwrite::refuse), Error);
    EXPECT_THROW(io::list_hdf5(folder / "none.h5"), Error);
}

TEST(Hdf5, AgreesWithH5py) {
    const TemporaryFolder folder;
    const io::CloudSet set = sample(4, 32);
    io::save_hdf5(folder / "ours.h5", set, Overwrite::refuse);
    run_python(folder, R"(
import h5py, numpy as np
f = h5py.File('ours.h5', 'r')
d, l, p, n = f['data'][:], f['label'][:], f['pid'][:], f['normal'][:]
assert d.shape == (4, 32, 3) and d.dtype == np.float32 and l.shape == (4, 1) and p.shape == (4, 32)
names = [s.decode() for s in f['name'][:]]
assert names[2] == 'shape 2'
with h5py.File('theirs.h5', 'w') as o:
    o['data'], o['label'], o['pid'], o['normal'], o['name'] = d, l, p, n, names
    o['faceId'] = np.zeros((4, 32), 'i4')
with h5py.File('narrow.h5', 'w') as o:
    o.create_dataset('data', data=d.astype('f8'), chunks=(1, 32, 1), compression='gzip')
    o['label'] = l[:, 0].astype('>u2')
    o['pid'] = p.astype('u1')
    o.create_dataset('normal', data=n.astype('>f4'))
    o['name'] = np.array(names, 'S20')
def broken(name, **sets):
    with h5py.File(name, 'w') as o:
        for k, v in sets.items(): o[k] = v
broken('nodata.h5', label=l)
broken('rank.h5', data=d[0])
broken('columns.h5', data=np.zeros((2, 5, 4), 'f4'))
broken('integers.h5', data=np.zeros((2, 5, 3), 'i4'))
broken('label.h5', data=d, label=np.zeros(3, 'i4'))
broken('floatlabel.h5', data=d, label=np.zeros(4, 'f4'))
broken('pid.h5', data=d, pid=np.zeros((4, 31), 'i4'))
broken('normal.h5', data=d, normal=np.zeros((4, 32), 'f4'))
broken('empty.h5', data=np.zeros((0, 32, 3), 'f4'))
with h5py.File('huge.h5', 'w') as o: o.create_dataset('data', shape=(2**30, 2**30, 3), dtype='f4', chunks=(1, 32, 3))
with h5py.File('group.h5', 'w') as o: o.create_group('data')
)");
    expect_equal_sets(io::load_hdf5(folder / "theirs.h5"), set);
    io::CloudSet narrow = io::load_hdf5(folder / "narrow.h5");
    expect_equal_sets(narrow, set);
    ::testing::internal::CaptureStderr();
    expect_contains(refusal_of(folder / "nodata.h5"), "has no dataset data");
    expect_contains(refusal_of(folder / "rank.h5"), "data: must be [m, n, 3], got [32, 3]");
    expect_contains(refusal_of(folder / "columns.h5"), "data: must be [m, n, 3], got [2, 5, 4]");
    expect_contains(refusal_of(folder / "integers.h5"), "data: must hold floats");
    expect_contains(refusal_of(folder / "label.h5"), "label: must be [4], got [3]");
    expect_contains(refusal_of(folder / "floatlabel.h5"), "label: must hold integers");
    expect_contains(refusal_of(folder / "pid.h5"), "pid: must be [4, 32], got [4, 31]");
    expect_contains(refusal_of(folder / "normal.h5"), "normal: must be [4, 32, 3], got [4, 32]");
    expect_contains(refusal_of(folder / "empty.h5"), "holds no points");
    expect_contains(refusal_of(folder / "huge.h5"), "exceed the limit");
    expect_contains(refusal_of(folder / "group.h5"), "data is not a dataset");
    expect_contains(refusal_of(folder / "missing.h5"), "cannot open");
    expect_contains(refusal_of(folder.path()), "is a folder");
    write_bytes(folder / "text.h5", bytes_of("hello"));
    expect_contains(refusal_of(folder / "text.h5"), "not an HDF5 file");
    Bytes cut = read_bytes(folder / "ours.h5");
    cut.resize(cut.size() / 2);
    write_bytes(folder / "cut.h5", cut);
    EXPECT_NE(refusal_of(folder / "cut.h5"), "");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace stipple::test
