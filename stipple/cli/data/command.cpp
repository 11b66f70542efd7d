#include "stipple/cli/commands.h"
#include "stipple/cli/data/commands.h"

namespace stipple::cli {

Command add_data(Arguments& root, Common& common) {
    Arguments& app = root.command("data", "Describe, convert, draw and pack data sets");
    app.footer("Example:\n  stipple data info modelnet40_ply_hdf5_2048\n  stipple data COMMAND --help");
    Command group{&app, {}, {}, {}};
    group.commands = {add_data_info(app, common), add_data_convert(app, common), add_data_preview(app, common),
                      add_data_pack(app, common)};
    return group;
}

}  // namespace stipple::cli
