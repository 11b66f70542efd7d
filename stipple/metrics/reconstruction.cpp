#include "stipple/metrics/reconstruction.h"

#include <cmath>

#include "stipple/core/error.h"

namespace stipple::metrics {

double normalised_reconstruction_error(std::span<const double> of_samples, std::span<const double> of_wholes) {
    constexpr const char* kWho = "normalised_reconstruction_error";
    STIPPLE_REQUIRE(of_samples.size() == of_wholes.size(), "{}: {} errors of samples, {} of wholes", kWho,
                    of_samples.size(), of_wholes.size());
    STIPPLE_REQUIRE(!of_samples.empty(), "{}: no clouds", kWho);
    double sum = 0;
    for (size_t i = 0; i < of_samples.size(); ++i) {
        STIPPLE_REQUIRE(of_samples[i] >= 0 && std::isfinite(of_samples[i]), "{}: error {} of sample {}", kWho,
                        of_samples[i], i);
        STIPPLE_REQUIRE(of_wholes[i] > 0 && std::isfinite(of_wholes[i]), "{}: error {} of whole cloud {}", kWho,
                        of_wholes[i], i);
        sum += of_samples[i] / of_wholes[i];
    }
    return sum / static_cast<double>(of_samples.size());
}

}  // namespace stipple::metrics
