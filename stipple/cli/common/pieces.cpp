#include "stipple/cli/common/pieces.h"

#include "stipple/cli/common/table.h"
#include "stipple/geometry/merge_clouds.h"
#include "stipple/geometry/mesh_parts.h"

namespace stipple::cli {

void CloudInput::for_each(const std::function<void(const Mesh& piece)>& body) {
    if (!whole_) whole_ = load_with_progress(file_.path, file_.from, file_.item, common_, result_.warnings);
    about_file(file_.path, [&] { body(*whole_); });
}

void warn_of_faces(const Mesh& piece, const std::string& path, Result& result) {
    if (piece.faces() > 0)
        result.warnings.push_back(fmt::format("{}: the {} faces are left out", path, grouped(piece.faces())));
}

void extend(Bounds& all, const Bounds& more) {
    for (size_t axis = 0; axis < 3 && more.finite > 0; ++axis) {
        all.min[axis] = all.finite ? std::min(all.min[axis], more.min[axis]) : more.min[axis];
        all.max[axis] = all.finite ? std::max(all.max[axis], more.max[axis]) : more.max[axis];
    }
    all.finite += more.finite;
}

CloudOutput::CloudOutput(OutputFile file, const Common& common, std::string_view product)
    : file_(std::move(file)), common_(common), format_(require_output(file_, common, product)) {}

void CloudOutput::add(Mesh piece) {
    points_ += piece.vertices.size();
    pieces_.push_back(std::move(piece));
}

void CloudOutput::finish(const std::string& what, const std::string& why_empty, Result& result) {
    if (points_ == 0) {
        if (!io::info_of(format_).counts)
            throw Error(ErrorCode::bad_argument, Place{file_.path},
                        fmt::format("{}, and {} cannot hold no points", why_empty, io::info_of(format_).name));
        result.warnings.push_back(fmt::format("{}: {}", file_.path, why_empty));
    }
    if (pieces_.size() == 1) {
        save_output(pieces_[0], file_, format_, what, common_, result);
        return;
    }
    std::vector<const Mesh*> pieces;
    FileFacts facts;
    bool same = true;
    for (const Mesh& piece : pieces_) {
        if (pieces.empty()) facts = piece.vertices.facts;
        same = geometry::merge_facts(facts, piece.vertices.facts) && same;
        pieces.push_back(&piece);
    }
    if (!same) result.warnings.push_back(fmt::format("{}: the coordinate systems differ, none is kept", file_.path));
    Mesh all = geometry::merge_meshes(pieces);
    all.vertices.facts = std::move(facts);
    pieces_.clear();
    save_output(all, file_, format_, what, common_, result);
}

PointCloud masked(const PointCloud& cloud, const std::vector<uint8_t>& mask) {
    std::vector<int32_t> kept;
    for (size_t i = 0; i < mask.size(); ++i)
        if (mask[i]) kept.push_back(static_cast<int32_t>(i));
    return select(cloud, View<const int32_t, 1>(kept.data(), {static_cast<int64_t>(kept.size())}));
}

KeepReport keep_points(const InputFile& input, CloudOutput& output,
                       const std::function<std::vector<uint8_t>(const PointCloud& piece)>& mask_of,
                       const std::string& what, const Common& common, Result& result) {
    KeepReport report;
    result.fields["inputs"] = Json::array({input.path});
    CloudInput(input, common, result).for_each([&](const Mesh& piece) {
        warn_of_faces(piece, input.path, result);
        Mesh part;
        part.vertices = masked(piece.vertices, mask_of(piece.vertices));
        report.points += piece.vertices.size();
        report.kept += part.vertices.size();
        output.add(std::move(part));
    });
    result.fields["points"] = report.points;
    result.fields["kept"] = report.kept;
    output.finish(fmt::format("{} of {} points {}", grouped(report.kept), grouped(report.points), what),
                  fmt::format("no point of {} is {}", input.path, what), result);
    if (!common.table.empty())
        result.text = format_table(
            {{"file", "points", "kept", "written"}, {{output.path(), report.points, report.kept, !common.dry_run}}},
            common.table);
    return report;
}

}  // namespace stipple::cli
