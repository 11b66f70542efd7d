#pragma once
// The commands of `stipple radiance`, and what they share.

#include "stipple/cli/common/description.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/radiance/evaluate.h"

namespace stipple::cli {

Command add_radiance_train(Arguments& group, Common& common);
Command add_radiance_render(Arguments& group, Common& common);
Command add_radiance_evaluate(Arguments& group, Common& common);
Command add_radiance_export(Arguments& group, Common& common);
Command add_radiance_info(Arguments& group, Common& common);

/// What is in a field, for people and for --json.
Description describe_field(const std::string& path, const radiance::Field& field);

/// The scores of views, the mean last.
Table score_table(const radiance::ViewScores& scores);

/// Six numbers of --box as a box; none where the option was not given. Throws Error{bad_argument} for an empty one.
std::optional<Box<double>> parse_box(const std::vector<double>& numbers);

}  // namespace stipple::cli
