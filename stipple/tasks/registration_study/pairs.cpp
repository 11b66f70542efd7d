#include "stipple/tasks/registration_study/pairs.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/folder.h"
#include "stipple/core/json_reader.h"
#include "stipple/io/format.h"
#include "stipple/io/npz.h"
#include "stipple/tasks/small_files.h"

namespace stipple::tasks::study {
namespace {

constexpr size_t kMostPairText = 1 << 26;  // bytes
constexpr double kMillimetre = 1e-3;
constexpr double kPublished = 1e-2;  // rounding of rotations

/// What one object of the list says, before it is a pair.
struct WrittenPair {
    std::string scene, name, source, target;
    double overlap = 0;
    std::vector<double> rotation, translation, matrix;  // row by row
};

/// The next number of a matrix, in the order of its rows; what follows the key are indices.
void take_number(JsonField& field, std::vector<double>& numbers) {
    constexpr size_t kMost = 16;
    std::string_view before;
    field.last_word(before);
    if (numbers.size() == kMost) field.fail("has too many numbers");
    double number = 0;
    field.take(number);
    numbers.push_back(number);
}

/// "cloud_bin_3" of 3, or the name of a file.
std::string take_scan(const JsonField& field) {
    std::string name;
    if (field.is_text()) {
        field.take(name);
        return name;
    }
    int64_t number = 0;
    field.take(number);
    return fmt::format("cloud_bin_{}", number);
}

geometry::RigidTransform truth_of(const WrittenPair& written) {
    geometry::RigidTransform truth;
    const bool is_matrix = written.matrix.size() == 16;
    const size_t stride = is_matrix ? 4 : 3;
    const std::vector<double>& rows = is_matrix ? written.matrix : written.rotation;
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) truth.rotation[i][j] = rows[stride * i + j];
    for (size_t i = 0; i < 3; ++i) truth.translation[i] = is_matrix ? rows[stride * i + 3] : written.translation[i];
    truth.rotation = geometry::nearest_rotation(truth.rotation, kPublished);
    return truth;
}

PosePair pair_of(const WrittenPair& written, size_t number) {
    const auto fail = [&](const std::string& what) {
        throw Error(ErrorCode::bad_file, fmt::format("pair {} {}", number, what));
    };
    if (written.source.empty() || written.target.empty()) fail("has no source and target");
    const bool is_fragment = written.rotation.size() == 9 && written.translation.size() == 3;
    if (!is_fragment && written.matrix.size() != 16) fail("has neither R and t nor T_target_source, 4 x 4");
    PosePair pair;
    pair.is_files = written.scene.empty();
    pair.scene = pair.is_files ? written.name : written.scene;
    pair.source = written.source;
    pair.target = written.target;
    pair.overlap = written.overlap;
    try {
        pair.truth = truth_of(written);
    } catch (const Error& error) {
        fail("has " + error.message());
    }
    return pair;
}

PointCloud cloud_of(const io::NpyArray& array, const std::string& name) {
    if (array.shape.size() != 2 || array.shape[1] != 3)
        throw Error(ErrorCode::bad_file, fmt::format("array {} must be [n, 3]", name));
    PointCloud cloud(array.shape[0]);
    const auto fill = [&]<class T>(T, double scale) {
        const T* numbers = reinterpret_cast<const T*>(array.data.data());
        for (int64_t i = 0; i < 3 * cloud.size(); ++i)
            cloud.positions.data()[i] = static_cast<float>(scale * static_cast<double>(numbers[i]));
    };
    switch (array.dtype) {
        case DType::i16: fill(int16_t{}, kMillimetre); break;
        case DType::i32: fill(int32_t{}, kMillimetre); break;
        case DType::f32: fill(float{}, 1); break;
        case DType::f64: fill(double{}, 1); break;
        default: throw Error(ErrorCode::bad_file, fmt::format("array {} must be int16, int32 or float", name));
    }
    return cloud;
}

std::map<std::string, PointCloud> load_fragments(const std::string& path) {
    try {
        io::FileSource source(path);
        io::ByteReader reader(source);
        std::map<std::string, PointCloud> fragments;
        for (const auto& [name, array] : io::parse_npz_arrays(reader)) fragments.emplace(name, cloud_of(array, name));
        return fragments;
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

}  // namespace

std::vector<PosePair> parse_pairs(std::string_view text) {
    std::vector<WrittenPair> written;
    const std::string object = "{\"pairs\": " + std::string(text) + "}";
    read_json("the pairs", object, [&](JsonField& field) {
        if (field.word() != "pairs") field.fail("is not known");
        WrittenPair& pair = field.element(written);
        const std::string_view key = field.word();
        if (key == "scene")
            field.take(pair.scene);
        else if (key == "name")
            field.take(pair.name);
        else if (key == "source" || key == "target")
            (key == "source" ? pair.source : pair.target) = take_scan(field);
        else if (key == "overlap")
            field.take(pair.overlap);
        else if (key == "R")
            take_number(field, pair.rotation);
        else if (key == "t")
            take_number(field, pair.translation);
        else if (key == "T_target_source")
            take_number(field, pair.matrix);
    });
    std::vector<PosePair> pairs;
    for (const WrittenPair& one : written) pairs.push_back(pair_of(one, pairs.size()));
    return pairs;
}

std::vector<PairSet> load_pair_sets(const std::string& path) {
    constexpr std::string_view kEnd = "pairs.json";
    std::vector<std::string> names;
    std::string folder = path;
    if (is_folder(path)) {
        for (const std::string& name : list_folder(path))
            if (name.size() >= kEnd.size() && name.compare(name.size() - kEnd.size(), kEnd.size(), kEnd) == 0)
                names.push_back(name);
        if (names.empty()) throw Error(ErrorCode::bad_file, Place{path}, "has no file *pairs.json");
    } else {
        const size_t slash = path.rfind('/');
        folder = slash == std::string::npos ? "." : path.substr(0, slash);
        names.push_back(slash == std::string::npos ? path : path.substr(slash + 1));
    }
    std::vector<PairSet> sets;
    for (const std::string& name : names) {
        PairSet set;
        set.folder = folder;
        set.name = stem_of(name);
        if (const size_t at = set.name.rfind("_pairs"); at != std::string::npos) set.name.resize(at);
        const std::string file = folder + "/" + name;
        try {
            set.pairs = parse_pairs(load_text(file, kMostPairText, "pairs of scans"));
            if (set.pairs.empty()) throw Error(ErrorCode::bad_file, "holds no pairs");
        } catch (const Error& error) {
            throw error.at_path(file);
        }
        sets.push_back(std::move(set));
    }
    return sets;
}

PointCloud PairScans::load(const PairSet& set, const PosePair& pair, const std::string& name) {
    if (pair.is_files) {
        io::Warnings warnings;
        return std::move(io::load(set.folder + "/" + name, {}, warnings).vertices);
    }
    const std::string path = set.folder + "/" + pair.scene + ".npz";
    if (path != path_) {
        fragments_ = load_fragments(path);
        path_ = path;
    }
    const auto found = fragments_.find(name);
    if (found == fragments_.end()) throw Error(ErrorCode::bad_file, Place{path}, fmt::format("has no array {}", name));
    return found->second.clone();
}

}  // namespace stipple::tasks::study
