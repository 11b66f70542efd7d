#include "stipple/cli/mesh_commands.h"

namespace stipple::cli {

Command add_mesh(CLI::App& root, Common& common) {
    CLI::App* app = root.add_subcommand("mesh", "Sample, check, close, measure and draw meshes");
    app->footer("Example:\n  stipple mesh info part.stl\n  stipple mesh COMMAND --help");
    Command group{"mesh", app, {}, {}, {}};
    // clang-format off
    group.commands = {
        add_mesh_info(*app, common),
        add_mesh_sample(*app, common),
        add_mesh_watertight(*app, common),
        add_mesh_distance(*app, common),
        add_mesh_rays(*app, common),
        add_mesh_surface(*app, common),
    };
    // clang-format on
    return group;
}

}  // namespace stipple::cli
