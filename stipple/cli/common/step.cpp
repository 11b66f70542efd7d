#include "stipple/cli/common/step.h"

#include "stipple/tasks/edit.h"

namespace stipple::cli {

PointCloud masked(const PointCloud& cloud, const std::vector<uint8_t>& mask) {
    std::vector<int32_t> kept;
    for (size_t i = 0; i < mask.size(); ++i)
        if (mask[i]) kept.push_back(static_cast<int32_t>(i));
    return select(cloud, View<const int32_t, 1>(kept.data(), {static_cast<int64_t>(kept.size())}));
}

void warn_of_faces(int64_t faces, StepReport& report) {
    if (faces > 0) report.warnings.push_back(fmt::format("the {} faces are left out", grouped(faces)));
}

Mesh keep(const Step& step, const Mesh& piece, KeepCount& count) {
    Mesh part;
    part.vertices = masked(piece.vertices, step.mask(piece.vertices));
    count.points += piece.vertices.size();
    count.kept += part.vertices.size();
    count.faces += piece.faces();
    return part;
}

StepReport report_of(const Step& step, const KeepCount& count) {
    StepReport report{fmt::format("{} of {} points {}", grouped(count.kept), grouped(count.points), step.kept)};
    const tasks::KeptPoints kept{count.points, count.kept};
    report.fields = to_json(tasks::kept_points_fields(), &kept);
    warn_of_faces(count.faces, report);
    if (step.finish) step.finish(report);
    return report;
}

StepReport run_step(const Step& step, Mesh& mesh) {
    if (step.run) return step.run(mesh);
    KeepCount count;
    mesh = keep(step, mesh, count);
    return report_of(step, count);
}

void tell(const StepReport& report, const std::string& place, Result& result) {
    result.fields.update(report.fields);
    result.text += report.text;
    for (const std::string& warning : report.warnings) result.warnings.push_back(fmt::format("{}: {}", place, warning));
}

}  // namespace stipple::cli
