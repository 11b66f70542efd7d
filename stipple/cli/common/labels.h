#pragma once
// Labels that a command finds for points: as a picture, and the commands that do no more.

#include <span>

#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"

namespace stipple::cli {

/// Labels as colours: each from 0 its own, below 0 grey. One panel.
Image draw_labels(const PointCloud& cloud, std::span<const int32_t> labels, const std::string& caption,
                  const std::string& up);

/// The options of a command that labels points (planes, clusters) which are not about how.
struct LabelCommand {
    CloudFiles files;
    std::string picture, up = "z";
};

/// What such a command found; the labels are in an attribute.
struct Labelled {
    StepReport report = {};
    Table table = {};
    std::string text = {};   // for people, where there is nothing else to be done
    std::string saved = {};  // in the line of the output
};

/// Reads, labels, writes the cloud and a picture where they are wanted, reports. `find` puts labels of int32 into
/// `attribute`.
Result run_labels(const LabelCommand& command, const std::string& attribute, const Common& common,
                  const std::function<Labelled(PointCloud& cloud)>& find);
/// The rest of its options: --picture, --up and the formats.
void add_label_options(Arguments& app, LabelCommand& command, const std::string& what);

}  // namespace stipple::cli
