#pragma once
// The commands of `stipple data`.

#include "stipple/cli/command.h"

namespace stipple::cli {

Command add_data_info(Arguments& group, Common& common);
Command add_data_convert(Arguments& group, Common& common);
Command add_data_preview(Arguments& group, Common& common);
Command add_data_pack(Arguments& group, Common& common);

}  // namespace stipple::cli
