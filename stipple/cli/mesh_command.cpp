#include "stipple/cli/mesh_commands.h"

namespace stipple::cli {

Command add_mesh(CLI::App& root, Common& common) {
    CLI::App* app = root.add_subcommand("mesh", "Commands on meshes: stipple mesh --help");
    app->footer("Example:\n  stipple mesh info part.stl\n  stipple mesh COMMAND --help");
    Command group{"mesh", app, {}, {}, {}};
    // clang-format off
    group.commands = {
        add_mesh_info(*app, common),
    };
    // clang-format on
    return group;
}

}  // namespace stipple::cli
