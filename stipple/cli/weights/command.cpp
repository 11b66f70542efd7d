#include "stipple/cli/commands.h"
#include "stipple/cli/weights/commands.h"

namespace stipple::cli {

Command add_weights(Arguments& root, Common& common) {
    Arguments& app = root.command("weights", "Files of trained weights: what is in them, other storage, confidence");
    app.footer("Example:\n  stipple weights info model.safetensors\n  stipple weights COMMAND --help");
    Command group{&app, {}, {}, {}};
    group.commands = {add_weights_info(app, common), add_weights_convert(app, common),
                      add_weights_confidence(app, common)};
    return group;
}

}  // namespace stipple::cli
