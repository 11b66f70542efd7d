#include "stipple/cli/common/pieces.h"

#include "stipple/cli/common/table.h"
#include "stipple/geometry/merge_clouds.h"
#include "stipple/geometry/mesh_parts.h"

namespace stipple::cli {
namespace {

constexpr io::Format kStreamed = io::Format::las;  // the one format that comes in chunks

}  // namespace

bool CloudInput::is_streamed() const {
    return file_.item < 0 && io::is_las(file_.path, file_.from);
}

void CloudInput::for_each(const std::function<void(const Mesh& piece)>& body) {
    if (!is_streamed()) {
        if (!whole_) whole_ = load_with_progress(file_.path, file_.from, file_.item, common_, result_.warnings);
        about_file(file_.path, [&] { body(*whole_); });
        return;
    }
    io::Warnings warnings;
    FileProgress progress(common_);
    io::StreamOptions options;
    options.format = &kStreamed;
    options.las_records = wanted_.records;
    if (wanted_.records) {
        options.only = wanted_.attributes;
        options.attributes = !wanted_.attributes.empty();
    }
    options.reading.on_progress = [&](int64_t done, int64_t total) { progress.show(file_.path, done, total); };
    const auto reader = io::CloudReader::open(file_.path, options, warnings);
    Mesh piece;
    while (reader->next(piece.vertices)) about_file(file_.path, [&] { body(piece); });
    for (const std::string& warning : warnings)
        if (!has_warned_) result_.warnings.push_back(fmt::format("{}: {}", file_.path, warning));
    has_warned_ = true;
}

PointCloud CloudInput::first() {
    PointCloud point;
    if (is_streamed()) {
        io::Warnings told_later;
        io::StreamOptions options;
        options.format = &kStreamed;
        options.chunk_points = 1;
        io::CloudReader::open(file_.path, options, told_later)->next(point);
        return point;
    }
    for_each([&](const Mesh& piece) {
        const int32_t index = 0;
        point = select(piece.vertices, View<const int32_t, 1>(&index, {std::min<int64_t>(1, piece.vertices.size())}));
    });
    return point;
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

void CloudOutput::set_grid(const FileFacts::Grid& grid) {
    STIPPLE_ASSERT(points_ == 0 && !writer_);
    file_.writing.scale = grid.scale;
    file_.writing.offset = grid.offset;
}

void CloudOutput::add(Mesh piece) {
    const FileFacts& facts = piece.vertices.facts;
    if (points_ == 0 && pieces_.empty() && !is_streamed_)
        is_streamed_ = format_ == io::Format::las && file_.path != "-" && facts.las && facts.grid;
    points_ += piece.vertices.size();
    if (!is_streamed_) {
        pieces_.push_back(std::move(piece));
        return;
    }
    if (common_.dry_run) return;
    about_file(file_.path, [&] {
        if (!writer_)
            writer_ = io::CloudWriter::open(file_.path, common_.overwrite_mode(), file_.writing, warnings_, &format_);
        writer_->write(std::move(piece.vertices));
    });
}

void CloudOutput::finish(const std::string& what, const std::string& why_empty, Result& result) {
    if (points_ == 0) {
        if (!io::info_of(format_).counts)
            throw Error(ErrorCode::bad_argument, Place{file_.path},
                        fmt::format("{}, and {} cannot hold no points", why_empty, io::info_of(format_).name));
        result.warnings.push_back(fmt::format("{}: {}", file_.path, why_empty));
    }
    if (is_streamed_) {
        if (writer_) about_file(file_.path, [&] { writer_->finish(); });
        writer_.reset();
        for (const std::string& warning : warnings_)
            result.warnings.push_back(fmt::format("{}: {}", file_.path, warning));
        report_output(file_, format_, points_, 0, what, common_, result);
        return;
    }
    if (pieces_.size() == 1) {
        save_output(pieces_[0], file_, format_, what, common_, result);
        return;
    }
    bool systems_differ = false;
    const Mesh all = joined(pieces_, systems_differ);
    if (systems_differ)
        result.warnings.push_back(fmt::format("{}: the coordinate systems differ, none is kept", file_.path));
    pieces_.clear();
    save_output(all, file_, format_, what, common_, result);
}

Mesh joined(const std::vector<Mesh>& pieces, bool& systems_differ) {
    std::vector<const Mesh*> all;
    FileFacts facts;
    for (const Mesh& piece : pieces) {
        if (all.empty()) facts = piece.vertices.facts;
        if (!geometry::merge_facts(facts, piece.vertices.facts)) systems_differ = true;
        all.push_back(&piece);
    }
    Mesh whole = geometry::merge_meshes(all);
    whole.vertices.facts = std::move(facts);
    return whole;
}

void require_attributes(const Step& step, CloudInput& input) {
    if (!step.attributes.empty() && input.is_streamed())
        about_file(input.path(), [&] { return step.mask(input.first()); });
}

Result keep_points(const Step& step, const CloudFiles& files, const Common& common) {
    CloudOutput output(files.output, common);
    Result result;
    const std::string& path = files.input.path;
    result.fields["inputs"] = Json::array({path});
    CloudInput pieces(files.input, common, result, {output.format() == io::Format::las, step.attributes});
    require_attributes(step, pieces);
    KeepCount count;
    pieces.for_each([&](const Mesh& piece) { output.add(keep(step, piece, count)); });
    const StepReport report = report_of(step, count);
    tell(report, path, result);
    output.finish(report.what, fmt::format("no point of {} is {}", path, step.kept), result);
    if (!common.table.empty())
        result.text = format_table(
            {{"file", "points", "kept", "written"}, {{output.path(), count.points, count.kept, !common.dry_run}}},
            common.table);
    return result;
}

}  // namespace stipple::cli
