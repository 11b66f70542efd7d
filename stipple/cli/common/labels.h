#pragma once
// Labels that a command finds for points: as an attribute, and as a picture.

#include <span>

#include "stipple/cli/command.h"
#include "stipple/core/image.h"

namespace stipple::cli {

/// In place of an attribute of the same name, or at the end.
void put_attribute(Attributes& attributes, Attribute attribute);

/// An attribute of int32 from labels.
Attribute label_attribute(const std::string& name, std::span<const int32_t> labels);

/// Labels as colours: each from 0 its own, below 0 grey. One panel.
Image draw_labels(const PointCloud& cloud, std::span<const int32_t> labels, const std::string& caption,
                  const std::string& up);

}  // namespace stipple::cli
