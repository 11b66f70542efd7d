#pragma once
// How much a classifier's answer is worth: probabilities that mean what they say, and whether the cloud is unlike
// anything the network was trained on.
//
// Probabilities are those of the logits over a temperature [Guo et al. 2017]. A cloud is unlike the training clouds
// when its shape (tasks/shape_measures.h) is not one that clouds of the classes it is taken for have: its squared
// Mahalanobis distance to a class, averaged over the classes by their probabilities, is larger than that of nearly all
// training clouds of its size. All numbers are fixed on training clouds and travel in the weights' metadata
// ("stipple.confidence", JSON, about 10 kB for 40 classes). docs/engine.md tells how well it works.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stipple/tasks/shape_measures.h"

namespace stipple::tasks {

struct Confidence {
    static constexpr int kFactor = kShapeMeasures * (kShapeMeasures + 1) / 2;

    /// Of the measures of a class: the squared distance of m is |factor (m - mean)|^2.
    struct Class {
        ShapeMeasures mean = {};
        std::array<double, kFactor> factor = {};  // lower triangle, row by row
    };
    /// Of clouds of so many points: fewer points measure differently, and less precisely.
    struct Size {
        int64_t points = 0;
        ShapeMeasures shift = {};  // of the measures, from the largest size
        double limit = 0;          // of the distance
    };

    double temperature = 1;
    std::vector<Class> classes;
    std::vector<Size> sizes;  // ascending
};

/// Training clouds of one size: what the network says of them, what they measure, what they are.
struct ConfidenceClouds {
    int64_t points = 0;         // of each
    std::vector<float> logits;  // [clouds, classes]
    std::vector<ShapeMeasures> measures;
    std::vector<int32_t> labels;
};

struct ConfidenceOptions {
    /// Of training clouds; the others are taken for unlike. A network is less sure of clouds that it has not seen, so
    /// that somewhat fewer of those are accepted.
    double accepted = 0.985;
    /// 0: the best for the clouds given. A network that knows its training clouds by heart makes it too small: where
    /// clouds were held out, give fit_temperature() of those.
    double temperature = 0;
};

/// The temperature, 0.05 to 20, with the least mean negative log likelihood of the labels; by golden section, to 0.1 %.
double fit_temperature(std::span<const float> logits, std::span<const int32_t> labels, int64_t classes);

/// Several sizes, several sets of one size if wanted (drawn at random, farthest points). Classes are described by the
/// clouds of the largest size; one with few clouds is drawn towards what all have in common. Throws Error{bad_argument}
/// for no clouds, a label out of range, a class without clouds, sizes that do not fit, numbers that are not finite.
Confidence fit_confidence(std::span<const ConfidenceClouds> sets, int64_t classes,
                          const ConfidenceOptions& options = {});

/// What to think of an answer.
struct Assessment {
    std::vector<double> probabilities;  // of the classes
    /// Distance over the limit of its size: above 1 is unlike anything. Nothing without a Confidence.
    std::optional<double> distance;
    /// To compare poses of a cloud with: the logarithm of the sum of the exponentials of the logits, which tells more
    /// than probabilities that are all near 1, less 2 distance^2.
    double evidence = 0;

    bool is_unlike() const { return distance && *distance > 1; }
};

/// Of logits [classes], and of the measures of a cloud of so many points. Between sizes, and not beyond them, numbers
/// are interpolated by the logarithm of the points. Throws Error{bad_argument} when there are other classes.
Assessment assess(const Confidence& confidence, std::span<const float> logits, const ShapeMeasures& measures,
                  int64_t points);
/// Softmax alone.
Assessment assess(std::span<const float> logits);

/// As JSON. parse_confidence is strict: unknown or missing fields and numbers out of range are Error{bad_file}.
std::string confidence_json(const Confidence& confidence);
Confidence parse_confidence(std::string_view json);

/// That of the metadata for a network of so many classes; nothing when there is none. Throws Error{bad_file}.
std::optional<Confidence> confidence_of(const std::map<std::string, std::string>& metadata, int64_t classes);
void set_confidence(std::map<std::string, std::string>& metadata, const Confidence& confidence);

}  // namespace stipple::tasks
