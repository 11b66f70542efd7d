#include "stipple/io/npy.h"

#include "tests/io/binary_samples.h"
#include "tests/support/python.h"

namespace stipple::test {
namespace {

/// A version 1 file with this dict and `data` bytes of zeros.
Bytes npy(const std::string& dict, size_t data) {
    std::string text = "\x93NUMPY";
    text += std::string("\x01\x00", 2);
    text += static_cast<char>(dict.size() & 0xff);
    text += static_cast<char>(dict.size() >> 8);
    return bytes_of(text + dict + std::string(data, '\0'));
}

io::NpyArray parse_array(const Bytes& bytes) {
    io::MemorySource source(bytes);
    io::ByteReader reader(source);
    return io::parse_npy_array(reader);
}

std::string refusal_of_array(const Bytes& bytes) {
    try {
        parse_array(bytes);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file);
        return std::string(error.what()) + " | " + error.hint();
    }
    ADD_FAILURE() << "accepted";
    return "";
}

TEST(Npy, ReadsWhatItWrites) {
    const Mesh mesh = dyadic_cloud(70'000);
    const Bytes bytes = write(io::write_npy, mesh);
    EXPECT_EQ(bytes.size(), 128u + 12 * 70'000);
    expect_equal(parse(io::parse_npy, bytes), mesh);
    expect_equal(parse_pipe(io::parse_npy, bytes), mesh);
    Mesh odd = dyadic_cloud(2);
    odd.vertices.positions.data()[0] = NAN;
    odd.vertices.positions.data()[4] = INFINITY;
    expect_equal(parse(io::parse_npy, write(io::write_npy, odd)), odd);
}

TEST(Npy, WorldCoordinatesKeepTheirPrecision) {
    Mesh mesh = dyadic_cloud(1000);
    mesh.vertices.origin = {500000, 4649776, 120};
    const Mesh back = parse(io::parse_npy, write(io::write_npy, mesh));
    for (int64_t i = 0; i < 1000; ++i)
        for (int axis = 0; axis < 3; ++axis)
            EXPECT_NEAR(back.vertices.world(i, axis), mesh.vertices.world(i, axis), 1e-6);
    EXPECT_NE(back.vertices.origin[0], 0);
}

TEST(Npy, ArraysOfEveryTypeRoundTrip) {
    for (const DType dtype : {DType::u8, DType::i8, DType::u16, DType::i16, DType::u32, DType::i32, DType::u64,
                              DType::i64, DType::f16, DType::f32, DType::f64, DType::boolean}) {
        io::NpyArray array;
        array.shape = {2, 3, 4};
        array.dtype = dtype;
        array.data = Buffer(array.bytes());
        for (int64_t i = 0; i < array.bytes(); ++i) array.data.data()[i] = static_cast<std::byte>(i % 2);
        MemorySink sink;
        io::write_npy_array(array, sink);
        const io::NpyArray back = parse_array(sink.bytes());
        EXPECT_EQ(back.shape, array.shape);
        EXPECT_EQ(back.dtype, dtype);
        EXPECT_EQ(std::memcmp(back.data.data(), array.data.data(), static_cast<size_t>(array.bytes())), 0);
    }
    io::NpyArray array;
    array.dtype = DType::bf16;
    MemorySink sink;
    EXPECT_THROW(io::write_npy_array(array, sink), Error);
}

TEST(Npy, EveryPrefixIsAnError) {
    expect_no_prefix(io::parse_npy, write(io::write_npy, dyadic_cloud(3)));
}

TEST(Npy, RefusesMalformedFiles) {
    const auto shaped = [](const std::string& shape, const std::string& descr = "'<f4'") {
        return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }\n";
    };
    expect_contains(refusal_of_array({}), "empty file");
    expect_contains(refusal_of_array(bytes_of("hello world")), "not an NPY file");
    expect_contains(refusal_of_array(bytes_of("\x93NUMPY\x04")), "ends in the middle of the NPY version");
    Bytes version = npy(shaped("(1, 3)"), 12);
    version[6] = std::byte{4};
    expect_contains(refusal_of_array(version), "NPY version 4");
    Bytes length = npy(shaped("(1, 3)"), 12);
    length[9] = std::byte{0x7f};
    expect_contains(refusal_of_array(length), "the NPY header: ");
    Bytes huge = npy(shaped("(1, 3)"), 12);
    huge[6] = std::byte{2};
    for (size_t i = 8; i < 12; ++i) huge[i] = std::byte{0xff};
    expect_contains(refusal_of_array(huge), "NPY header of 4294967295 bytes, the limit is 65536");
    expect_contains(refusal_of_array(npy(shaped("(4000000000, 4000000000, 3)"), 12)), "overflows 64 bits");
    expect_contains(refusal_of_array(npy(shaped("(1000000000, 3)"), 12)), "needs 12000000000 bytes, the file has 12");
    expect_contains(refusal_of_array(npy(shaped("(1, 3)"), 13)), "needs 12 bytes, the file has 13");
    expect_contains(refusal_of_array(npy(shaped("(-1, 3)"), 12)), "expected a count");
    expect_contains(refusal_of_array(npy(shaped("(99999999999999999999, 3)"), 12)), "expected a count");
    expect_contains(refusal_of_array(npy(shaped("(1,1,1,1,1,1,1,1,3)"), 12)), "more than 8 dimensions");
    expect_contains(refusal_of_array(npy(shaped("(1, 3)", "'|O'"), 12)), "allow_pickle=False");
    expect_contains(refusal_of_array(npy(shaped("(1,)", "[('x', '<f4'), ('y', '<f4')]"), 8)), "structured array");
    expect_contains(refusal_of_array(npy(shaped("(1, 3)", "'<c8'"), 24)), "type \"<c8\" is not read");
    expect_contains(refusal_of_array(npy(shaped("(1, 3)", "'<U4'"), 48)), "is not read");
    expect_contains(refusal_of_array(npy("{'descr': '<f4', 'shape': (1, 3)}", 12)), "needs descr");
    expect_contains(refusal_of_array(npy("{'descr': '<f4', 'descr': '<f4'}", 12)), "occurs twice");
    expect_contains(refusal_of_array(npy("{'descr': '<f4', 'x': 1}", 12)), "unknown key");
    expect_contains(refusal_of_array(npy(shaped("(1, 3)") + "x", 12)), "text after the dict");
    expect_contains(refusal_of_array(npy("{'fortran_order': __import__('os')}", 12)), "must be True or False");
    expect_contains(refusal_of_array(npy("", 12)), "expected '{'");
    EXPECT_EQ(parse(io::parse_npy, npy(shaped("(0, 3)"), 0)).vertices.size(), 0);
    expect_contains(refusal(io::parse_npy, npy(shaped("(0, 9000000000000000000)"), 0)), "columns, the limit is");
    expect_contains(refusal(io::parse_npy, npy(shaped("(0, 4, 3)"), 0)), "holds no clouds");
    expect_contains(refusal(io::parse_npy, npy(shaped("(4, 2)"), 32)), "is no cloud");
    expect_contains(refusal(io::parse_npy, npy(shaped("(6,)"), 24)), "is no cloud");
    expect_contains(refusal(io::parse_npy, npy(shaped("()"), 4)), "is no cloud");
    io::ReadOptions options;
    options.limits.max_points = 2;
    expect_contains(refusal(io::parse_npy, npy(shaped("(3, 3)"), 36), options), "3 points, the limit is 2");
}

TEST(Npy, OneOfManyClouds) {
    io::NpyArray array;
    array.shape = {4, 5, 3};
    array.data = Buffer(array.bytes());
    for (int64_t i = 0; i < 60; ++i) reinterpret_cast<float*>(array.data.data())[i] = static_cast<float>(i);
    MemorySink sink;
    io::write_npy_array(array, sink);
    expect_contains(refusal(io::parse_npy, sink.bytes()), "holds 4 clouds; choose one with --item 0..3");
    io::ReadOptions options;
    options.item = 2;
    const Mesh mesh = parse(io::parse_npy, sink.bytes(), nullptr, options);
    EXPECT_EQ(mesh.vertices.size(), 5);
    EXPECT_EQ(mesh.vertices.positions.data()[0], 30);
    options.item = 4;
    EXPECT_THROW(parse(io::parse_npy, sink.bytes(), nullptr, options), Error);
}

TEST(Npy, TellsWhatItDrops) {
    Mesh mesh = dyadic_cloud(3);
    mesh.triangles = Array<int32_t, 2>({1, 3});
    mesh.vertices.attributes.push_back(make_attribute<uint8_t>("label", 3, 1, [](int64_t) { return uint8_t{1}; }));
    io::Warnings warnings;
    write(io::write_npy, mesh, &warnings);
    EXPECT_EQ(warnings.at(0), "NPY cannot hold faces and attribute label: dropped; .npz holds all");
}

TEST(Npy, AgreesWithNumpy) {
    const TemporaryFolder folder;
    const Mesh mesh = dyadic_cloud(50);
    write_bytes(folder / "ours.npy", write(io::write_npy, mesh));
    Mesh far = dyadic_cloud(50);
    far.vertices.origin = {1e6, 0, 0};
    write_bytes(folder / "far.npy", write(io::write_npy, far));
    run_python(folder, R"(
import numpy as np
from numpy.lib import format
a = np.load('ours.npy')
assert a.shape == (50, 3) and a.dtype == np.float32
f = np.load('far.npy')
assert f.dtype == np.float64 and np.array_equal(f, a.astype('f8') + [1e6, 0, 0])
np.save('c.npy', a)
np.save('fortran.npy', np.asfortranarray(a))
np.save('big.npy', a.astype('>f4'))
np.save('double.npy', a.astype('f8'))
np.save('half.npy', np.zeros((2, 3), 'f2') + [0.5, -2, 65504])
np.save('int.npy', np.arange(12, dtype='>i8').reshape(4, 3))
for v in (1, 2, 3):
    with open('v%d.npy' % v, 'wb') as o: format.write_array(o, a, version=(v, 0))
np.save('utm.npy', np.array([[500000.001, 4649776.002, 1], [500001.5, 4649777.5, 2]]))
np.save('intensity.npy', np.c_[a, np.arange(50)].astype('f4'))
n = a / np.linalg.norm(a, axis=1, keepdims=True)
np.save('normal.npy', np.c_[a, n].astype('f4'))
np.save('color.npy', np.c_[a, np.arange(150).reshape(50, 3)].astype('f8'))
np.save('columns.npy', np.c_[a, a * 3].astype('f4'))
np.save('fortran3.npy', np.asfortranarray(np.arange(24, dtype='i4').reshape(1, 8, 3)))
np.save('object.npy', np.array([None, 1]), allow_pickle=True)
np.save('record.npy', np.zeros(3, [('x', 'f4'), ('y', 'f4')]))
)");
    const auto load = [&](const std::string& name) { return parse(io::parse_npy, read_bytes(folder / name)); };
    for (const char* name : {"c.npy", "fortran.npy", "big.npy", "double.npy", "v1.npy", "v2.npy", "v3.npy"})
        expect_equal(load(name), mesh);
    EXPECT_EQ(load("half.npy").vertices.positions.data()[5], 65504);
    EXPECT_EQ(load("int.npy").vertices.positions.data()[11], 11);
    EXPECT_EQ(load("fortran3.npy").vertices.positions.data()[23], 23);
    EXPECT_EQ(load("fortran3.npy").vertices.positions.data()[4], 4);
    const PointCloud utm = load("utm.npy").vertices;
    EXPECT_EQ(utm.origin[0], 500001);
    EXPECT_NEAR(utm.world(0, 1), 4649776.002, 1e-6);
    EXPECT_EQ(load("intensity.npy").vertices.attributes.at(0).name(), "intensity");
    EXPECT_EQ(load("intensity.npy").vertices.attributes.at(0).value(9), 9);
    const Mesh normal = load("normal.npy");
    EXPECT_EQ(normal.vertices.attributes.at(0).name(), "normal");
    EXPECT_EQ(normal.vertices.attributes.at(0).components(), 3);
    const Mesh color = load("color.npy");
    EXPECT_EQ(color.vertices.attributes.at(0).name(), "color");
    EXPECT_EQ(color.vertices.attributes.at(0).dtype(), DType::u8);
    EXPECT_EQ(color.vertices.attributes.at(0).value(1, 1), 4);
    EXPECT_EQ(load("columns.npy").vertices.attributes.at(2).name(), "column_5");
    expect_contains(refusal(io::parse_npy, read_bytes(folder / "object.npy")), "a pickle");
    expect_contains(refusal(io::parse_npy, read_bytes(folder / "record.npy")), "structured array");
}

}  // namespace
}  // namespace stipple::test
