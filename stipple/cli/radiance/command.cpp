#include "stipple/cli/commands.h"
#include "stipple/cli/radiance/commands.h"

namespace stipple::cli {

Command add_radiance(Arguments& root, Common& common) {
    Arguments& app = root.command("radiance", "Fields of light from photographs: pictures, points and meshes of them");
    app.footer("Example:\n  stipple radiance info lego.field\n  stipple radiance COMMAND --help");
    Command group{&app, {}, {}, {}};
    // clang-format off
    group.commands = {
        add_radiance_train(app, common),
        add_radiance_render(app, common),
        add_radiance_evaluate(app, common),
        add_radiance_export(app, common),
        add_radiance_info(app, common),
    };
    // clang-format on
    return group;
}

std::optional<Box<double>> parse_box(const std::vector<double>& numbers) {
    if (numbers.empty()) return {};
    Box<double> box;
    for (int axis = 0; axis < 3; ++axis) {
        box.low[axis] = numbers[static_cast<size_t>(axis)];
        if (std::isinf(box.low[axis])) box.low[axis] = -INFINITY;  // -inf would be read as an option
        box.high[axis] = numbers[static_cast<size_t>(axis) + 3];
        STIPPLE_REQUIRE(box.low[axis] < box.high[axis], "--box: from {} to {} is nothing", box.low[axis],
                        box.high[axis]);
    }
    return box;
}

}  // namespace stipple::cli
