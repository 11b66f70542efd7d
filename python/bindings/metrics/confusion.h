#pragma once

#include <memory>

#include "stipple/metrics/classification.h"

namespace stipple::python {

/// stipple.metrics.Confusion.
struct ConfusionObject {
    std::shared_ptr<metrics::Confusion> confusion;
};

}  // namespace stipple::python
