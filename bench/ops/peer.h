#pragma once
// What the peers of the ops offer. Each library in a file of its own, so that its headers meet no other's.
//
// A peer is prepared outside the clock (the points in the library's own cloud type), then run with 1 and more threads.
// Libraries that answer one query at a time are queried by all threads, each its share of the queries.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace peer {

/// One job: what it works on.
struct Job {
    std::string op;            // "knn", "radius", "fps", "voxel", "chamfer", "emd", "sinkhorn"
    const float* a = nullptr;  // [n, 3]
    int64_t n = 0;
    const float* b = nullptr;  // [m, 3], for ops on two clouds
    int64_t m = 0;
    int64_t count = 0;  // k of knn, samples of fps, iterations of sinkhorn
    float length = 0;   // radius, voxel edge, epsilon of sinkhorn
};

/// What a run found, to be compared: a mean distance, a number of neighbours or of cells, ... Peers in another process
/// bring their own seconds, without its start.
struct Outcome {
    double value = 0, seconds = -1;
    Outcome(double found) : value(found) {}  // NOLINT(google-explicit-constructor)
    Outcome(double found, double own_seconds) : value(found), seconds(own_seconds) {}
};
using Run = std::function<Outcome(int threads)>;

struct Peer {
    const char* name;
    const char* op;
    bool is_threaded;  // false: one thread, whatever is asked for
    std::function<Run(const Job&)> prepare;
};

std::vector<Peer> stipple_peers();
std::vector<Peer> naive_peers();
std::vector<Peer> nanoflann_peers();
std::vector<Peer> flann_peers();
std::vector<Peer> cgal_peers();
std::vector<Peer> pcl_peers();
std::vector<Peer> open3d_peers();
std::vector<Peer> scipy_peers();

// All agree on what the value of a run is:
//   knn      mean squared distance to the k-th neighbour
//   radius   neighbours in all
//   fps      samples
//   voxel    cells
//   chamfer  mean squared distance, summed over both ways
//   emd      mean distance of the pairs
//   sinkhorn the plan's mean distance

}  // namespace peer
