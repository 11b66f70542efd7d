#pragma once
// Pairs of scans with known poses, as benchmarks of registration give them.
//
// A file of pairs is a JSON list of objects. Either two fragments of a scene of 3DMatch:
//   {"scene": "7-scenes-redkitchen", "source": 1, "target": 0, "overlap": 0.8, "R": [[...], [...], [...]], "t": [...]}
// whose fragments are the arrays cloud_bin_1 and cloud_bin_0 of 7-scenes-redkitchen.npz beside the file, whole numbers
// in millimetres, others in metres; or two files beside it:
//   {"name": "street", "source": "b.bin", "target": "a.bin", "T_target_source": [[...], [...], [...], [...]]}
// Both matrices lead from the source to the target. Other keys are passed over.

#include <map>
#include <string>
#include <vector>

#include "stipple/geometry/rigid_transform.h"

namespace stipple::tasks::study {

struct PosePair {
    std::string scene;           // of files: their name
    std::string source, target;  // names of arrays, or of files
    geometry::RigidTransform truth;
    double overlap = 0;  // share of the source, as the file tells it; 0 where it does not
    bool is_files = false;
};

/// The pairs of one file, in its order.
struct PairSet {
    std::string name;  // of the file, without "_pairs" and extension
    std::string folder;
    std::vector<PosePair> pairs;
};

/// Rotations are replaced by the nearest ones: those that were published are off by up to 1e-3. Throws Error{bad_file}
/// with the place for what is not as above.
std::vector<PosePair> parse_pairs(std::string_view text);

/// A file of pairs, or all files *pairs.json of a folder, by name. Throws Error{bad_file}, also for a folder without
/// any.
std::vector<PairSet> load_pair_sets(const std::string& path);

/// Reads scans of pairs; the arrays of one scene are kept until those of another are asked for.
class PairScans {
public:
    /// Throws Error{bad_file} for a file or an array that is not there.
    PointCloud load(const PairSet& set, const PosePair& pair, const std::string& name);

private:
    std::string path_;
    std::map<std::string, PointCloud> fragments_;
};

}  // namespace stipple::tasks::study
