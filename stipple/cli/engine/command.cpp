#include "stipple/cli/commands.h"
#include "stipple/cli/engine/commands.h"

namespace stipple::cli {

Command add_engine(Arguments& root, Common& common) {
    Arguments& app = root.command("engine", "Compile networks, run them and time them");
    app.footer(
        "Example:\n  stipple engine bench model.safetensors --precision fp32,bf16\n  stipple engine COMMAND --help");
    Command group{&app, {}, {}, {}};
    // clang-format off
    group.commands = {
        add_engine_build(app, common),
        add_engine_run(app, common),
        add_engine_bench(app, common),
        add_engine_inspect(app, common),
        add_engine_export(app, common),
        add_engine_new(app, common),
    };
    // clang-format on
    return group;
}

}  // namespace stipple::cli
