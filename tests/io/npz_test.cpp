#include "stipple/io/npz.h"

#include "tests/io/binary_samples.h"
#include "tests/support/python.h"

namespace stipple::test {
namespace {

/// A mesh with attributes of every type and of awkward names.
Mesh rich_mesh() {
    const int64_t n = 40;
    Mesh mesh = dyadic_cloud(n);
    mesh.vertices.origin = {500000.25, -3, 1e9};
    mesh.vertices.positions.data()[7] = NAN;
    auto& a = mesh.vertices.attributes;
    a.push_back(make_attribute<uint8_t>("color", n, 4, [](int64_t i) { return static_cast<uint8_t>(i); }));
    a.push_back(make_attribute<int8_t>("b", n, 1, [](int64_t i) { return static_cast<int8_t>(-i); }));
    a.push_back(make_attribute<uint16_t>("c", n, 2, [](int64_t i) { return static_cast<uint16_t>(i * 999); }));
    a.push_back(make_attribute<int16_t>("triangles", n, 1, [](int64_t i) { return static_cast<int16_t>(-i); }));
    a.push_back(make_attribute<uint32_t>("face.x", n, 3, [](int64_t i) { return static_cast<uint32_t>(i) << 24; }));
    a.push_back(make_attribute<int32_t>("attribute.y", n, 1, [](int64_t i) { return static_cast<int32_t>(-i); }));
    a.push_back(make_attribute<uint64_t>("points", n, 3, [](int64_t i) { return ~static_cast<uint64_t>(i); }));
    a.push_back(make_attribute<int64_t>("label", n, 1, [](int64_t i) { return -i; }));
    a.push_back(make_attribute<float>("normal", n, 3, [](int64_t i) { return static_cast<float>(i) / 3; }));
    a.push_back(make_attribute<double>("time", n, 1, [](int64_t i) { return 1e9 + static_cast<double>(i) / 3; }));
    a.push_back(make_attribute<bool>("origin", n, 1, [](int64_t i) { return i % 2 == 0; }));
    a.push_back(
        make_attribute<float>("a name/with odd ünicode", n, 1, [](int64_t i) { return static_cast<float>(i); }));
    mesh.triangles = Array<int32_t, 2>({30, 3});
    for (int64_t i = 0; i < 90; ++i) mesh.triangles.data()[i] = static_cast<int32_t>(i * 7 % n);
    mesh.face_attributes.push_back(
        make_attribute<float>("area", 30, 1, [](int64_t i) { return static_cast<float>(i); }));
    mesh.face_attributes.push_back(
        make_attribute<uint8_t>("color", 30, 3, [](int64_t i) { return static_cast<uint8_t>(i); }));
    return mesh;
}

template <class T>
void put(Bytes& bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

size_t find_bytes(const Bytes& bytes, std::string_view text, size_t from = 0) {
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return all.find(text, from);
}

TEST(Npz, HoldsEverything) {
    const Mesh mesh = rich_mesh();
    io::Warnings warnings;
    const Bytes bytes = write(io::write_npz, mesh, &warnings);
    expect_equal(parse(io::parse_npz, bytes, &warnings), mesh);
    expect_equal(parse_pipe(io::parse_npz, bytes), mesh);
    EXPECT_TRUE(warnings.empty()) << warnings[0];
    const Mesh plain = dyadic_cloud(1);
    expect_equal(parse(io::parse_npz, write(io::write_npz, plain)), plain);
}

TEST(Npz, LargeArrays) {
    Mesh mesh = dyadic_cloud(400'000);  // more than a piece of the CRC
    expect_equal(parse(io::parse_npz, write(io::write_npz, mesh)), mesh);
}

TEST(Npz, ManyEntriesNeedZip64) {
    io::NpyArrays arrays;
    for (int i = 0; i < 65'536; ++i) {
        io::NpyArray array;
        array.shape = {0};
        arrays.emplace_back(std::to_string(i), std::move(array));
    }
    MemorySink sink;
    io::write_npz_arrays(arrays, sink);
    io::MemorySource source(sink.bytes());
    io::ByteReader reader(source);
    EXPECT_EQ(io::parse_npz_arrays(reader).size(), 65'536u);
    const TemporaryFolder folder;
    write_bytes(folder / "many.npz", sink.bytes());
    run_python(
        folder,
        "import numpy as np\nz = np.load('many.npz')\nassert len(z.files) == 65536 and z['65535'].shape == (0,)");
}

TEST(Npz, EveryPrefixIsAnError) {
    Mesh mesh = dyadic_cloud(2);
    mesh.vertices.attributes.push_back(make_attribute<uint8_t>("label", 2, 1, [](int64_t) { return uint8_t{1}; }));
    expect_no_prefix(io::parse_npz, write(io::write_npz, mesh));
}

TEST(Npz, EveryFlippedByteIsAnErrorOrHarmless) {
    const Bytes bytes = write(io::write_npz, dyadic_cloud(2));
    const Mesh truth = parse(io::parse_npz, bytes);
    int harmless = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
        Bytes damaged = bytes;
        damaged[i] ^= std::byte{0x55};
        try {
            expect_equal(parse(io::parse_npz, damaged), truth);  // a date, a version, a mode
            ++harmless;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_file);
        }
    }
    EXPECT_LT(harmless, 60);
}

TEST(Npz, RefusesMalformedArchives) {
    const Bytes good = write(io::write_npz, dyadic_cloud(2));
    expect_contains(refusal(io::parse_npz, {}), "empty file");
    expect_contains(refusal(io::parse_npz, bytes_of("hello world")), "not a zip archive");
    const auto with = [&](size_t at, auto value) {
        Bytes bytes = good;
        put(bytes, at, value);
        return bytes;
    };
    expect_contains(refusal(io::parse_npz, with(6, uint16_t{1})), "is encrypted");
    expect_contains(refusal(io::parse_npz, with(8, uint16_t{12})), "method 12");
    expect_contains(refusal(io::parse_npz, with(18, uint32_t{4000000000u})), "4000000000 bytes needed");
    expect_contains(refusal(io::parse_npz, with(14, uint32_t{1})), "is damaged: its CRC-32");
    expect_contains(refusal(io::parse_npz, with(30, uint8_t{'q'})), "does not match");
    expect_contains(refusal(io::parse_npz, with(30 + 9, uint8_t{'-'})), "is not an array (.npy)");
    Bytes after = good;
    after.push_back(std::byte{0});
    expect_contains(refusal(io::parse_npz, after), "bytes after the end");
    // The count of the directory's end.
    expect_contains(refusal(io::parse_npz, with(good.size() - 12, uint16_t{2})), "does not match its 1 entries");
    io::ReadOptions options;
    options.limits.max_zip_entries = 1;
    Mesh two = dyadic_cloud(2);
    two.vertices.origin[0] = 1;
    expect_contains(refusal(io::parse_npz, write(io::write_npz, two), options), "more than 1 entries");
    // Two entries of one name.
    Bytes twice = write(io::write_npz, [] {
        Mesh mesh = dyadic_cloud(2);
        mesh.vertices.attributes.push_back(
            make_attribute<uint8_t>("positionz", 2, 1, [](int64_t) { return uint8_t{1}; }));
        return mesh;
    }());
    twice[find_bytes(twice, "positionz") + 8] = std::byte{'s'};
    expect_contains(refusal(io::parse_npz, twice), "occurs twice");
    EXPECT_THROW(parse(io::parse_npz, with(26, uint16_t{0xffff})), Error);
}

TEST(Npz, RefusesMeshesThatBreakTheRules) {
    const auto archive = [](io::NpyArrays arrays) {
        MemorySink sink;
        io::write_npz_arrays(arrays, sink);
        return sink.bytes();
    };
    const auto array = [](std::vector<int64_t> shape, DType dtype, int64_t value) {
        io::NpyArray result;
        result.shape = std::move(shape);
        result.dtype = dtype;
        result.data = Buffer(result.bytes());
        std::fill_n(result.data.data(), result.bytes(), std::byte{0});
        if (dtype == DType::i64 && result.elements()) std::memcpy(result.data.data(), &value, 8);
        return result;
    };
    io::NpyArrays arrays;
    expect_contains(refusal(io::parse_npz, archive({})), "no arrays");
    arrays.emplace_back("positions", array({2, 3}, DType::f32, 0));
    arrays.emplace_back("triangles", array({1, 3}, DType::i64, 2));
    expect_contains(refusal(io::parse_npz, archive(std::move(arrays))), "face 0 has index 2 of 2 points");
    arrays.clear();
    arrays.emplace_back("positions", array({2, 3}, DType::f32, 0));
    arrays.emplace_back("triangles", array({1, 4}, DType::i64, 0));
    expect_contains(refusal(io::parse_npz, archive(std::move(arrays))), "must be integers of shape [m, 3]");
    arrays.clear();
    arrays.emplace_back("positions", array({2, 3}, DType::f32, 0));
    arrays.emplace_back("origin", array({2}, DType::f64, 0));
    expect_contains(refusal(io::parse_npz, archive(std::move(arrays))), "origin must be floats of shape [3]");
    arrays.clear();
    arrays.emplace_back("positions", array({0, 3}, DType::f32, 0));
    arrays.emplace_back("triangles", array({1, 3}, DType::i64, 0));
    expect_contains(refusal(io::parse_npz, archive(std::move(arrays))), "face 0 has index 0 of 0 points");
    arrays.clear();
    arrays.emplace_back("a", array({2, 3}, DType::f32, 0));
    arrays.emplace_back("b", array({2, 3}, DType::f32, 0));
    expect_contains(refusal(io::parse_npz, archive(std::move(arrays))), "several are");
    arrays.clear();
    arrays.emplace_back("a", array({2, 3}, DType::f32, 0));
    arrays.emplace_back("b", array({5}, DType::f32, 0));
    io::Warnings warnings;
    EXPECT_EQ(parse(io::parse_npz, archive(std::move(arrays)), &warnings).vertices.size(), 2);
    EXPECT_EQ(warnings.at(0), "arrays that are no attributes of the 2 points: \"b\" [5]");
}

TEST(Npz, BfloatBecomesFloat) {
    Mesh mesh = dyadic_cloud(1);
    mesh.vertices.attributes.emplace_back("x", DType::bf16, 1, 1);
    const uint16_t bits = 0x3fc0;
    std::memcpy(mesh.vertices.attributes[0].data(), &bits, 2);
    io::Warnings warnings;
    const Mesh back = parse(io::parse_npz, write(io::write_npz, mesh, &warnings));
    EXPECT_EQ(back.vertices.attributes[0].value(0), 1.5);
    EXPECT_EQ(warnings.size(), 1u);
}

TEST(Npz, AgreesWithNumpy) {
    const TemporaryFolder folder;
    const Mesh mesh = rich_mesh();
    write_bytes(folder / "ours.npz", write(io::write_npz, mesh));
    run_python(folder, R"(
import io, sys, zipfile
import numpy as np
z = np.load('ours.npz', allow_pickle=False)
a = {k: z[k] for k in z.files}
assert zipfile.ZipFile('ours.npz').testzip() is None
assert a['positions'].shape == (40, 3) and a['positions'].dtype == np.float32
assert a['origin'].tolist() == [500000.25, -3, 1e9]
assert a['color'].shape == (40, 4) and a['b'].shape == (40,) and a['time'].dtype == np.float64
assert a['triangles'].shape == (30, 3) and a['triangles'].dtype == np.int32 and a['face.area'].shape == (30,)
assert a['attribute.origin'].dtype == np.bool_
np.savez('stored.npz', **a)
np.savez_compressed('deflated.npz', **a)
class Pipe(io.RawIOBase):  # neither seek nor tell: sizes follow the data
    def __init__(self, name): self.f = open(name, 'wb')
    def writable(self): return True
    def write(self, b): self.f.write(b); return len(b)
for method, name in ((0, 'stream.npz'), (8, 'stream_deflated.npz')):
    p = Pipe(name)
    with zipfile.ZipFile(p, 'w', method) as out:
        for k, v in a.items():
            with out.open(k + '.npy', 'w', force_zip64=(k == 'color')) as e: np.lib.format.write_array(e, v)
    p.f.close()
np.savez('points.npz', points=a['positions'].astype('f8'), faces=a['triangles'].astype('u8'), other=np.zeros(7))
np.savez_compressed('bomb.npz', positions=np.zeros((3000000, 3), 'f4'))
with zipfile.ZipFile('bzip.npz', 'w', zipfile.ZIP_BZIP2) as out: out.writestr('positions.npy', b'x' * 100)
)");
    const auto load = [&](const std::string& name) { return parse(io::parse_npz, read_bytes(folder / name)); };
    for (const char* name : {"stored.npz", "deflated.npz", "stream.npz", "stream_deflated.npz"}) {
        SCOPED_TRACE(name);
        expect_equal(load(name), mesh);
        expect_equal(parse_pipe(io::parse_npz, read_bytes(folder / name)), mesh);
    }
    const Mesh points = load("points.npz");
    EXPECT_EQ(points.faces(), 30);
    expect_contains(refusal(io::parse_npz, read_bytes(folder / "bzip.npz")), "compressed by method 12");

    const Bytes bomb = read_bytes(folder / "bomb.npz");
    io::ReadOptions options;
    options.limits.max_inflated = 1 << 20;
    expect_contains(refusal(io::parse_npz, bomb, options), "inflates to more than 1048576 bytes");
    options.limits = {};
    options.limits.max_inflation = 100;
    expect_contains(refusal(io::parse_npz, bomb, options), "inflates to more than 100 times its size");

    Mesh small = dyadic_cloud(2);
    write_bytes(folder / "small.npz", write(io::write_npz, small));
    run_python(folder, "import numpy as np\nz = np.load('small.npz')\nnp.savez_compressed('small2.npz', **z)\n");
    const Bytes deflated = read_bytes(folder / "small2.npz");
    expect_equal(parse(io::parse_npz, deflated), small);
    expect_no_prefix(io::parse_npz, deflated);
}

}  // namespace
}  // namespace stipple::test
