#pragma once
// What a study compares: ways to make a dense cloud of a sparse one.

#include <map>
#include <memory>

#include "stipple/tasks/upsample.h"
#include "stipple/tasks/upsampling_study/inputs.h"

namespace stipple::tasks::study {

///   input      the sparse points themselves
///   midpoints  upsampling without a network
///   network    upsampling by weights
///   files      what another program has made of the same inputs
///   floor      another sample of the true surface
enum class MethodKind { input, midpoints, network, files, floor };

struct Method {
    MethodKind kind = MethodKind::input;
    std::string name;
    std::string path = {};  // of weights, or of a folder

    std::map<std::string, std::string> overrides = {};  // options of a network, those that no parameter depends on
    double temperature = 0;                             // of a network that takes noise; the input's seed is its own
};

/// input, midpoints, the networks, the folders, floor, in this order. `models` and `folders` are "NAME=PATH"; a model
/// may also be a path or the name of shipped weights alone, which is then called after its file. Without any the
/// shipped upsampler. Throws Error{bad_argument} for names that are taken, empty, or more than letters, digits, '.',
/// '_' and
/// '-', Error{bad_file} for a folder that is not there.
std::vector<Method> list_methods(const std::vector<std::string>& models, const std::vector<std::string>& folders);

/// The option of a network that says how many neighbours it interpolates between; "" where it has none.
std::string neighbours_option(const network::Network& network);

struct Made {
    PointCloud cloud;
    double seconds = 0;  // of upsampling alone; NaN where nothing was computed
};

/// Runs methods; networks are loaded when they are first used, once for each number of neighbours.
class MethodRunner {
public:
    /// `several`: whether there is more than one input, so that a folder of files must have a folder for each.
    MethodRunner(std::string device, bool several) : device_(std::move(device)), several_(several) {}

    /// Loads a network; finds the file of a folder. So mistakes are told before hours are spent. Throws as run() does.
    void check(const Method& method, const Condition& condition, const Shape& shape, uint64_t seed);
    /// Whether a method has anything to do with a condition: where neighbours are set, networks that have them alone.
    bool runs(const Method& method, const Condition& condition);
    /// Changes when the outcome may: of weights their checksum, of a file its points.
    std::string fingerprint_of(const Method& method, const Condition& condition, const Shape& shape, uint64_t seed);
    /// Throws as upsample() does, and Error{bad_file} that names the shape which a folder of files lacks.
    Made run(const Method& method, const Condition& condition, const Shape& shape, const Mesh& mesh,
             const PointCloud& input, uint64_t seed);

private:
    struct Loaded {
        std::string checksum, option;
        std::unique_ptr<Upsampler> upsampler;
    };
    Loaded& loaded(const Method& method, int64_t neighbours);
    std::string find_file(const Method& method, const Condition& condition, const Shape& shape, uint64_t seed) const;

    std::string device_;
    bool several_;
    std::map<std::pair<std::string, int64_t>, Loaded> networks_;
};

/// The folder of an input below `inputs` of a study, and below that of another program's files: "noise-0.5-0".
std::string input_name(const Condition& condition, uint64_t seed);

}  // namespace stipple::tasks::study
