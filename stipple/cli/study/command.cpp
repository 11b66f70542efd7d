#include "stipple/cli/commands.h"
#include "stipple/cli/study/commands.h"

namespace stipple::cli {

Command add_studies(Arguments& root, Common& common) {
    Arguments& app = root.command("study", "Compare ways to upsample, sample or train, in tables and figures");
    app.footer(
        "Example:\n  stipple study upsampling-noise --data upsample_dev -o runs/noise\n"
        "  stipple study precision pointnet-cls --data modelnet40.stpk -o runs/precision");
    Command group{&app, {}, {}, {}};
    group.commands = add_sweep_studies(app, common);
    group.commands.push_back(add_study_real(app, common));
    group.commands.push_back(add_study_rings(app, common));
    group.commands.push_back(add_study_registration(app, common));
    group.commands.push_back(add_study_cost(app, common));
    group.commands.push_back(add_study_diagrams(app, common));
    group.commands.push_back(add_study_radiance(app, common));
    group.commands.push_back(add_study_sampling(app, common));
    group.commands.push_back(add_precision_elsewhere(app, common));
    return group;
}

}  // namespace stipple::cli
