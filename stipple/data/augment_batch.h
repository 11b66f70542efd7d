#pragma once
// Augmentation of a batch, from a data set that lies on the device: each cloud as augment() leaves it, in one kernel.
//
//   const StoredClouds set = {points, offsets, labels, largest};    // views of the device, made once
//   AugmentBatch batch;
//   batch.order = order, batch.first = first, batch.epoch = epoch;  // first and epoch: numbers on the device
//   batch.clouds = 64, batch.points = 1024, batch.options = recipe.augment, batch.seed = seed;
//   augment_batch(set, batch, out, {}, stream);
//
// What changes from batch to batch, `first` and `epoch` and the content of `order`, is read on the device: a CUDA graph
// that holds the call can be replayed for all batches of a training.

#include "stipple/data/augment.h"

namespace stipple::data {

/// The most points of a cloud on CUDA, where rows are chosen, shuffled, dropped or thinned.
inline constexpr int64_t kMostDevicePoints = 4096;

/// The clouds of a data set, one after another, all views contiguous and on one device.
struct StoredClouds {
    View<const float, 2> points;         // [total, 3]
    View<const int64_t, 1> offsets;      // [clouds + 1]: cloud c has the points offsets[c] to offsets[c + 1] - 1
    View<const int32_t, 1> labels = {};  // [total], one for each point, or none
    int64_t largest = 0;                 // points of the largest cloud; more is allowed, and costs memory on chip
};

struct AugmentBatch {
    View<const int32_t, 1> order;    // [any]: clouds of the set, as the batches of an epoch have them
    const int64_t* first = nullptr;  // on the set's device: the batch is order[*first], order[*first + 1], ...
    const int64_t* epoch = nullptr;  // on the set's device
    int64_t clouds = 0;              // of the batch
    int64_t points = 0;              // that each of them has in the batch, 1 to 2^31 - 1
    int64_t used = 0;                // of a cloud's stored points the first so many; 0: all
    AugmentOptions options = {};
    uint64_t seed = 0;
    int64_t first_label = 0;  // subtracted from each label
};

/// Whether CUDA takes clouds of which `largest` points are used: up to kMostDevicePoints; any number where the options
/// leave the rows as they are.
bool can_augment_on_device(const AugmentOptions& options, int64_t largest);

/// points  [batch.clouds * batch.points, 3]
/// labels  [batch.clouds * batch.points], or none
///
/// Of place i of the batch, c = order[*first + i], n is the number of used points: those of cloud c, at most `used`.
/// augment(first n points, options, seed, *epoch, c), where `choose` counts as 0 if it is n or more, leaves m rows; row
/// j of the place is row j % m of them, and its label that of the same point less first_label.
///
/// On CUDA the numbers differ from the CPU's as augment.h says for two machines: which rows there are does not, but
/// that thin may keep one more or less; coordinates do not without rotation, tilt and jitter. The same bits every time,
/// and on the CPU for any number of threads. CUDA allocates nothing, waits for nothing and can be captured.
///
/// Throws Error{bad_argument} as validate does, for wrong shapes, views that are not contiguous or on several devices,
/// labels that the set does not have, and on CUDA for what can_augment_on_device() refuses. A place whose order is
/// outside of `order`, whose cloud is none of the set, empty, larger than `largest` or outside of its points, and an
/// epoch below 0: Error{bad_argument} on the CPU; on CUDA, where nobody reads the numbers in time, all rows of the
/// place are NaN and their labels 0.
///
/// O(clouds (n + points)), with `shuffle` O(n log^2 n) on CUDA. One block of threads for each cloud there.
void augment_batch(const StoredClouds& set, const AugmentBatch& batch, View<float, 2> points,
                   View<int64_t, 1> labels = {}, Stream stream = {});

namespace cuda {
void augment_batch(const StoredClouds& set, const AugmentBatch& batch, View<float, 2> points, View<int64_t, 1> labels,
                   Stream stream);
}

}  // namespace stipple::data
