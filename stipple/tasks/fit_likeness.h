#pragma once
// The likeness of an autoencoder from the clouds that it was trained on.

#include <functional>

#include "stipple/data/data_set.h"
#include "stipple/tasks/reconstruct.h"

namespace stipple::tasks {

struct LikenessSizes {
    std::vector<int64_t> points = {2048, 1024, 512, 256, 128, 64, 32, 16, 8};
    uint64_t seed = 0;
};

/// The clouds of a set that are of some classes, by name; all where there are no names. Throws Error{bad_argument} for
/// a class that the set does not have, with those that it has, and for names where its clouds have no classes.
std::vector<int64_t> items_of_classes(const data::DataSet& set, const std::vector<std::string>& classes);

/// How far those clouds are from what is made of them: for each size that they have, so many of their points, the first
/// ones and random ones. `advance`, where given, is called after each cloud, twice for each size. Throws
/// Error{bad_argument} for a size below kFewestRebuilt, and as reconstruct() does.
std::vector<LikenessClouds> likeness_clouds(Reconstructor& reconstructor, const data::DataSet& set,
                                            const std::vector<int64_t>& items, const LikenessSizes& sizes,
                                            const std::function<void()>& advance = {});

}  // namespace stipple::tasks
