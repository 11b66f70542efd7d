#include "stipple/io/hdf5.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "stipple/io/common/conversion.h"
#include "stipple/io/common/world.h"

#ifdef STIPPLE_WITH_HDF5
#include <hdf5.h>
#endif

namespace stipple::io {

#ifndef STIPPLE_WITH_HDF5

namespace {
[[noreturn]] void refuse(const std::string& path) {
    throw Error(ErrorCode::bad_file, Place{path}, "built without HDF5", "configure with -DSTIPPLE_WITH_HDF5=ON");
}
}  // namespace

CloudSet load_hdf5(const std::string& path, const Limits&) {
    refuse(path);
}
Mesh load_hdf5_cloud(const std::string& path, const ReadOptions&, Warnings&) {
    refuse(path);
}
void save_hdf5(const std::string& path, const CloudSet&, Overwrite) {
    refuse(path);
}
std::vector<std::string> list_hdf5(const std::string& path) {
    refuse(path);
}
Array<float, 3> load_hdf5_array(const std::string& path, const std::string&, const Limits&) {
    refuse(path);
}
void save_hdf5_arrays(const std::string& path, std::span<const NamedArray>, Overwrite) {
    refuse(path);
}

#else

namespace {

/// One thread at a time, and silence: libhdf5 prints a stack of its own for every error.
class Library {
public:
    Library() : lock_(mutex()) {
        H5open();
        H5PLset_loading_state(0);
        H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
    ~Library() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

private:
    static std::mutex& mutex() {
        static std::mutex instance;
        return instance;
    }
    std::lock_guard<std::mutex> lock_;
    H5E_auto2_t function_ = nullptr;
    void* data_ = nullptr;
};

/// An identifier that closes itself.
class Id {
public:
    Id(hid_t id, herr_t (*closer)(hid_t)) : id_(id), close_(closer) {}
    Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
    Id& operator=(Id&&) = delete;
    ~Id() {
        if (id_ >= 0) close_(id_);
    }
    operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)
    bool good() const { return id_ >= 0; }
    /// Closes now; false when that fails, as it does when the last bytes cannot be written.
    bool close() { return close_(std::exchange(id_, -1)) >= 0; }

private:
    hid_t id_;
    herr_t (*close_)(hid_t);
};

class Reader {
public:
    Reader(const std::string& path, const Limits& limits) : path_(path), limits_(limits), file_(open(path)) {}

    /// The shape of `data`.
    void require_clouds() {
        const std::vector<hsize_t> shape = shape_of("data", H5T_FLOAT);
        if (shape.size() != 3 || shape[2] != 3) fail("data", "must be [m, n, 3]", shape);
        if (shape[0] == 0 || shape[1] == 0) throw Error(ErrorCode::bad_file, Place{path_}, "holds no points");
        // The extent of a dataset costs nothing to claim: chunks that were never written read as zeros.
        const auto limit = static_cast<hsize_t>(limits_.max_points);
        if (shape[1] > limit || shape[0] > limit)
            throw Error(ErrorCode::bad_file, Place{path_},
                        fmt::format("data: {} clouds of {} points, the limit is {}", shape[0], shape[1], limit));
        clouds = static_cast<int64_t>(shape[0]);
        points = static_cast<int64_t>(shape[1]);
    }

    int64_t clouds = 0, points = 0;

    bool has(const char* name) const { return H5Lexists(file_, name, H5P_DEFAULT) > 0; }

    std::vector<std::string> list() const {
        H5G_info_t info{};
        std::vector<std::string> result;
        bool good = H5Gget_info(file_, &info) >= 0;
        for (hsize_t i = 0; good && i < info.nlinks; ++i) {
            const auto name_of = [&](char* to, size_t capacity) {
                return H5Lget_name_by_idx(file_, ".", H5_INDEX_NAME, H5_ITER_INC, i, to, capacity, H5P_DEFAULT);
            };
            const ssize_t length = name_of(nullptr, 0);
            good = length >= 0;
            if (!good) break;
            std::string& name = result.emplace_back(static_cast<size_t>(length) + 1, '\0');  // libhdf5 ends it with one
            good = name_of(name.data(), name.size()) >= 0;
            name.pop_back();
        }
        if (!good) throw Error(ErrorCode::bad_file, Place{path_}, "its datasets cannot be listed");
        std::sort(result.begin(), result.end());
        return result;
    }

    /// A whole dataset of floats, of any shape with three dimensions.
    Array<float, 3> array(const std::string& name) const {
        const std::vector<hsize_t> shape = shape_of(name.c_str(), H5T_FLOAT);
        if (shape.size() != 3 || shape[0] == 0 || shape[1] == 0 || shape[2] == 0)
            fail(name.c_str(), "must be [m, n, c]", shape);
        const auto limit = static_cast<hsize_t>(limits_.max_points);
        const auto floats = static_cast<hsize_t>(limits_.max_inflated / 4);
        if (shape[0] > limit || shape[1] > limit || shape[2] > static_cast<hsize_t>(limits_.max_properties) ||
            shape[1] * shape[2] > floats || shape[0] > floats / (shape[1] * shape[2]))
            fail(name.c_str(), fmt::format("exceeds the limit of {} bytes", limits_.max_inflated), shape);
        const auto size = [&](int i) { return static_cast<int64_t>(shape[static_cast<size_t>(i)]); };
        Array<float, 3> result({size(0), size(1), size(2)});
        read(name.c_str(), H5T_FLOAT, {size(0), size(1), size(2)}, 0, size(0), H5T_NATIVE_FLOAT, result.data(), 4);
        return result;
    }

    /// Rows [first, first + count) of the first dimension of a dataset of the given shape, as `memory_type`.
    void read(const char* name, H5T_class_t type, const std::vector<int64_t>& expected, int64_t first, int64_t count,
              hid_t memory_type, void* to, int64_t element_bytes) const {
        const Id dataset(H5Dopen2(file_, name, H5P_DEFAULT), H5Dclose);
        const std::vector<hsize_t> shape = shape_of(name, type);
        std::vector<int64_t> plain(shape.begin(), shape.end());
        // [m] is as good as [m, 1].
        if (plain.size() == 2 && plain[1] == 1 && expected.size() == 1) plain.pop_back();
        if (plain != expected)
            fail(name, fmt::format("must be {}", shape_text(expected.data(), static_cast<int>(expected.size()))),
                 shape);
        std::vector<hsize_t> start(shape.size(), 0), extent = shape;
        start[0] = static_cast<hsize_t>(first);
        extent[0] = static_cast<hsize_t>(count);
        int64_t bytes = element_bytes;
        for (const hsize_t e : extent) bytes = checked_mul(bytes, static_cast<int64_t>(e));
        if (bytes > limits_.max_inflated)
            throw Error(ErrorCode::bad_file, Place{path_},
                        fmt::format("{}: {} bytes, the limit is {}", name, bytes, limits_.max_inflated));
        const Id space(H5Dget_space(dataset), H5Sclose);
        const Id memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), H5Sclose);
        if (!space.good() || !memory.good() ||
            H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr) < 0 ||
            H5Dread(dataset, memory_type, memory, space, H5P_DEFAULT, to) < 0)
            throw Error(ErrorCode::bad_file, Place{path_}, fmt::format("{}: cannot be read", name),
                        "the file is damaged or uses a filter that this libhdf5 lacks");
    }

    std::vector<std::string> names() const {
        const std::vector<hsize_t> shape = shape_of("name", H5T_STRING);
        if (shape.size() != 1 || static_cast<int64_t>(shape[0]) != clouds)
            fail("name", fmt::format("must be [{}]", clouds), shape);
        const Id dataset(H5Dopen2(file_, "name", H5P_DEFAULT), H5Dclose);
        const Id type(H5Dget_type(dataset), H5Tclose);
        const Id space(H5Dget_space(dataset), H5Sclose);
        std::vector<std::string> result(static_cast<size_t>(clouds));
        if (H5Tis_variable_str(type) > 0) {
            std::vector<char*> texts(result.size(), nullptr);
            const Id memory(H5Tcopy(H5T_C_S1), H5Tclose);
            H5Tset_size(memory, H5T_VARIABLE);
            H5Tset_cset(memory, H5Tget_cset(type));
            if (H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data()) < 0) fail_names();
            for (size_t i = 0; i < result.size(); ++i) result[i] = texts[i] ? texts[i] : "";
            H5Dvlen_reclaim(memory, space, H5P_DEFAULT, texts.data());
            return result;
        }
        const size_t width = H5Tget_size(type);
        if (width == 0 || width > 4096) fail_names();
        std::string texts(width * result.size(), '\0');
        if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data()) < 0) fail_names();
        for (size_t i = 0; i < result.size(); ++i) {
            const char* text = texts.data() + i * width;
            result[i].assign(text, std::find(text, text + width, '\0'));
        }
        return result;
    }

private:
    static Id open(const std::string& path) {
        // A folder, a missing file or a pipe is told in our own words.
        if (!FileSource(path).size() || path == "-")
            throw Error(ErrorCode::bad_file, Place{path}, "HDF5 is read from a file, not from a pipe");
        if (H5Fis_hdf5(path.c_str()) <= 0) throw Error(ErrorCode::bad_file, Place{path}, "not an HDF5 file");
        Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
        if (!file.good()) throw Error(ErrorCode::bad_file, Place{path}, "HDF5 cannot open it: damaged or in use");
        return file;
    }

    std::vector<hsize_t> shape_of(const char* name, H5T_class_t expected) const {
        if (!has(name))
            throw Error(ErrorCode::bad_file, Place{path_}, fmt::format("has no dataset {}", name),
                        std::string_view(name) == "data"
                            ? "the layout is data [m, n, 3], with label, pid and normal if any"
                            : "");
        const Id dataset(H5Dopen2(file_, name, H5P_DEFAULT), H5Dclose);
        if (!dataset.good()) throw Error(ErrorCode::bad_file, Place{path_}, fmt::format("{} is not a dataset", name));
        const Id type(H5Dget_type(dataset), H5Tclose);
        const Id space(H5Dget_space(dataset), H5Sclose);
        const H5T_class_t found = H5Tget_class(type);
        if (found != expected)
            throw Error(ErrorCode::bad_file, Place{path_}, fmt::format("{}: must hold {}", name, class_name(expected)));
        const int rank = H5Sget_simple_extent_ndims(space);
        if (rank < 1 || rank > 8) throw Error(ErrorCode::bad_file, Place{path_}, fmt::format("{}: is no array", name));
        std::vector<hsize_t> shape(static_cast<size_t>(rank));
        H5Sget_simple_extent_dims(space, shape.data(), nullptr);
        return shape;
    }

    static const char* class_name(H5T_class_t type) {
        return type == H5T_FLOAT ? "floats" : type == H5T_INTEGER ? "integers" : "text";
    }
    [[noreturn]] void fail(const char* name, const std::string& rule, const std::vector<hsize_t>& shape) const {
        const std::vector<int64_t> plain(shape.begin(), shape.end());
        throw Error(
            ErrorCode::bad_file, Place{path_},
            fmt::format("{}: {}, got {}", name, rule, shape_text(plain.data(), static_cast<int>(plain.size()))));
    }
    [[noreturn]] void fail_names() const { throw Error(ErrorCode::bad_file, Place{path_}, "name: cannot be read"); }

    const std::string& path_;
    Limits limits_;
    Id file_;
};

/// Makes the file in memory. libhdf5 keeps what a full disk refused, tries again when the process ends, and crashes.
class Writer {
public:
    /// `path` is for messages.
    explicit Writer(const std::string& path) : path_(path), file_(create(), H5Fclose) {
        require(file_.good(), "the file");
    }

    void write(const char* name, hid_t file_type, hid_t memory_type, std::vector<hsize_t> shape, const void* data) {
        const Id space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose);
        const Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        H5Pset_obj_track_times(properties, false);  // the same content gives the same file
        if (shape.size() > 1 && shape[1] > 1) {
            // One shape per chunk, so that one shape is read alone; a chunk has less than 4 GiB.
            std::vector<hsize_t> chunk = shape;
            chunk[0] = 1;
            chunk[1] = std::min<hsize_t>(chunk[1], hsize_t{1} << 20);
            H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data());
            H5Pset_shuffle(properties);
            H5Pset_deflate(properties, 4);
        }
        Id dataset(H5Dcreate2(file_, name, file_type, space, H5P_DEFAULT, properties, H5P_DEFAULT), H5Dclose);
        require(dataset.good() && H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, name);
        require(dataset.close(), name);
    }

    /// The bytes of the file.
    Buffer finish() {
        require(H5Fflush(file_, H5F_SCOPE_GLOBAL) >= 0, "the file");
        const ssize_t bytes = H5Fget_file_image(file_, nullptr, 0);
        require(bytes > 0, "the file");
        Buffer image(bytes);
        require(H5Fget_file_image(file_, image.data(), static_cast<size_t>(bytes)) == bytes && file_.close(),
                "the file");
        return image;
    }

private:
    static hid_t create() {
        const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        constexpr size_t kGrowth = size_t{8} << 20;
        if (H5Pset_fapl_core(access, kGrowth, false) < 0) return -1;
        return H5Fcreate("stipple.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);  // a name that never reaches the disk
    }
    void require(bool good, const char* what) const {
        if (!good) throw Error(ErrorCode::cannot_write, Place{path_}, fmt::format("HDF5 cannot write {}", what));
    }
    const std::string& path_;
    Id file_;
};

}  // namespace

CloudSet load_hdf5(const std::string& path, const Limits& limits) {
    const Library library;
    Reader reader(path, limits);
    reader.require_clouds();
    const int64_t m = reader.clouds, n = reader.points;
    if (m > limits.max_inflated / 12 / n)
        throw Error(
            ErrorCode::bad_file, Place{path},
            fmt::format("data: {} clouds of {} points exceed the limit of {} bytes", m, n, limits.max_inflated));
    CloudSet set;
    set.points = Array<float, 3>({m, n, 3});
    reader.read("data", H5T_FLOAT, {m, n, 3}, 0, m, H5T_NATIVE_FLOAT, set.points.data(), 4);
    if (reader.has("label")) {
        set.labels.resize(static_cast<size_t>(m));
        reader.read("label", H5T_INTEGER, {m}, 0, m, H5T_NATIVE_INT64, set.labels.data(), 8);
    }
    if (reader.has("pid")) {
        set.parts = Array<int32_t, 2>({m, n});
        reader.read("pid", H5T_INTEGER, {m, n}, 0, m, H5T_NATIVE_INT32, set.parts.data(), 4);
    }
    if (reader.has("normal")) {
        set.normals = Array<float, 3>({m, n, 3});
        reader.read("normal", H5T_FLOAT, {m, n, 3}, 0, m, H5T_NATIVE_FLOAT, set.normals.data(), 4);
    }
    if (reader.has("name")) set.names = reader.names();
    return set;
}

Mesh load_hdf5_cloud(const std::string& path, const ReadOptions& options, Warnings&) {
    const Library library;
    Reader reader(path, options.limits);
    reader.require_clouds();
    const int64_t m = reader.clouds, n = reader.points;
    if (options.item < 0 && m > 1)
        throw Error(ErrorCode::bad_file, Place{path},
                    fmt::format("holds {} clouds; choose one with --item 0..{}", m, m - 1));
    STIPPLE_REQUIRE(options.item < m, "item {} of a file that holds {} cloud{}", options.item, m, m == 1 ? "" : "s");
    const int64_t item = std::max<int64_t>(0, options.item);
    if (n > options.limits.max_inflated / 12)
        throw Error(ErrorCode::bad_file, Place{path},
                    fmt::format("data: {} points exceed the limit of {} bytes", n, options.limits.max_inflated));
    Mesh mesh;
    PointCloud& cloud = mesh.vertices;
    cloud = PointCloud(n);
    reader.read("data", H5T_FLOAT, {m, n, 3}, item, 1, H5T_NATIVE_FLOAT, cloud.positions.data(), 4);
    if (reader.has("pid")) {
        Attribute& label = cloud.attributes.emplace_back("label", DType::i32, n, 1);
        reader.read("pid", H5T_INTEGER, {m, n}, item, 1, H5T_NATIVE_INT32, label.data(), 4);
    }
    if (reader.has("normal")) {
        Attribute& normal = cloud.attributes.emplace_back("normal", DType::f32, n, 3);
        reader.read("normal", H5T_FLOAT, {m, n, 3}, item, 1, H5T_NATIVE_FLOAT, normal.data(), 4);
    }
    return mesh;
}

void save_hdf5(const std::string& path, const CloudSet& set, Overwrite overwrite) {
    const int64_t m = set.points.size(0), n = set.points.size(1);
    STIPPLE_REQUIRE(m > 0 && n > 0 && set.points.size(2) == 3, "HDF5: points must be [m, n, 3], got {}",
                    shape_text(set.points.shape().data(), 3));
    STIPPLE_REQUIRE(set.labels.empty() || static_cast<int64_t>(set.labels.size()) == m, "HDF5: {} labels for {} clouds",
                    set.labels.size(), m);
    STIPPLE_REQUIRE(set.names.empty() || static_cast<int64_t>(set.names.size()) == m, "HDF5: {} names for {} clouds",
                    set.names.size(), m);
    STIPPLE_REQUIRE(set.parts.elements() == 0 || (set.parts.size(0) == m && set.parts.size(1) == n),
                    "HDF5: parts must be [{}, {}], got {}", m, n, shape_text(set.parts.shape().data(), 2));
    STIPPLE_REQUIRE(set.normals.elements() == 0 || set.normals.shape() == set.points.shape(),
                    "HDF5: normals must be [{}, {}, 3], got {}", m, n, shape_text(set.normals.shape().data(), 3));
    AtomicFile file(path, overwrite);
    {
        const Library library;
        const auto clouds = static_cast<hsize_t>(m), points = static_cast<hsize_t>(n);
        Writer writer(path);
        writer.write("data", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {clouds, points, 3}, set.points.data());
        if (!set.labels.empty()) writer.write("label", H5T_STD_I64LE, H5T_NATIVE_INT64, {clouds, 1}, set.labels.data());
        if (set.parts.elements() > 0)
            writer.write("pid", H5T_STD_I32LE, H5T_NATIVE_INT32, {clouds, points}, set.parts.data());
        if (set.normals.elements() > 0)
            writer.write("normal", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {clouds, points, 3}, set.normals.data());
        if (!set.names.empty()) {
            std::vector<const char*> texts;
            for (const std::string& name : set.names) texts.push_back(name.c_str());
            const Id type(H5Tcopy(H5T_C_S1), H5Tclose);
            H5Tset_size(type, H5T_VARIABLE);
            H5Tset_cset(type, H5T_CSET_UTF8);
            writer.write("name", type, type, {clouds}, texts.data());
        }
        const Buffer image = writer.finish();
        file.write(image.data(), image.bytes());
    }
    file.commit();
}

std::vector<std::string> list_hdf5(const std::string& path) {
    const Library library;
    return Reader(path, {}).list();
}

Array<float, 3> load_hdf5_array(const std::string& path, const std::string& name, const Limits& limits) {
    const Library library;
    return Reader(path, limits).array(name);
}

void save_hdf5_arrays(const std::string& path, std::span<const NamedArray> arrays, Overwrite overwrite) {
    for (const NamedArray& array : arrays)
        STIPPLE_REQUIRE(array.values.elements() > 0, "HDF5: {} holds nothing", array.name);
    AtomicFile file(path, overwrite);
    {
        const Library library;
        Writer writer(path);
        for (const auto& [name, values] : arrays) {
            const auto size = [&v = values](int i) { return static_cast<hsize_t>(v.size(i)); };
            writer.write(name.c_str(), H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {size(0), size(1), size(2)}, values.data());
        }
        const Buffer image = writer.finish();
        file.write(image.data(), image.bytes());
    }
    file.commit();
}

#endif

void save_hdf5_cloud(const std::string& path, const Mesh& mesh, Overwrite overwrite, Warnings& warnings) {
    require_points(mesh, "HDF5");
    const PointCloud& cloud = mesh.vertices;
    const int64_t n = cloud.size();
    CloudSet set;
    set.points = Array<float, 3>({1, n, 3});
    const FloatWorld world(cloud, "HDF5", warnings);
    std::memcpy(set.points.data(), world.data(), static_cast<size_t>(12 * n));
    std::vector<std::string> dropped;
    if (mesh.faces() > 0) dropped.push_back("faces");
    for (const Attribute& attribute : cloud.attributes) {
        if (attribute.name() == "normal" && attribute.dtype() == DType::f32 && attribute.components() == 3) {
            set.normals = Array<float, 3>({1, n, 3});
            std::memcpy(set.normals.data(), attribute.data(), static_cast<size_t>(12 * n));
            continue;
        }
        Attribute label;
        if (attribute.name() != "label" || !is_integer(attribute.dtype()) || attribute.components() != 1 ||
            !convert_exactly(attribute, DType::i32, label)) {
            dropped.push_back("attribute " + attribute.name());
            continue;
        }
        set.parts = Array<int32_t, 2>({1, n});
        std::memcpy(set.parts.data(), label.data(), static_cast<size_t>(4 * n));
        if (attribute.dtype() != DType::i32)
            warnings.push_back(fmt::format("HDF5: label is read back as int32, not {}", name_of(attribute.dtype())));
    }
    warn_dropped(dropped, "HDF5", "", warnings);
    save_hdf5(path, set, overwrite);
}

}  // namespace stipple::io
