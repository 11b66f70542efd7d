#include "stipple/cli/commands.h"
#include "stipple/cli/mesh/commands.h"

namespace stipple::cli {

Command add_mesh(Arguments& root, Common& common) {
    Arguments& app = root.command("mesh", "Sample, check, close, measure and draw meshes");
    app.footer("Example:\n  stipple mesh info part.stl\n  stipple mesh COMMAND --help");
    Command group{&app, {}, {}, {}};
    // clang-format off
    group.commands = {
        add_mesh_info(app, common),
        add_mesh_sample(app, common),
        add_mesh_watertight(app, common),
        add_mesh_distance(app, common),
        add_mesh_rays(app, common),
        add_mesh_surface(app, common),
        add_mesh_simplify(app, common),
    };
    // clang-format on
    return group;
}

}  // namespace stipple::cli
