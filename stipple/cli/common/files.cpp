#include "stipple/cli/common/files.h"

#include <cmath>
#include <set>

#include "stipple/core/terminal.h"
#include "stipple/io/image_file.h"
#include "stipple/io/text.h"

namespace stipple::cli {
namespace {

/// A file besides the cloud.
void report_file(const std::string& path, std::string_view format, const Common& common, Result& result) {
    result.fields["outputs"].push_back({{"path", path}, {"format", format}, {"written", !common.dry_run}});
    result.text += fmt::format("{} {}\n", common.dry_run ? "would write" : "wrote", printable(path));
}

}  // namespace

std::pair<int64_t, int64_t> parse_size(const std::string& text) {
    const size_t cross = text.find('x');
    int64_t width = 0, height = 0;
    const bool valid = io::parse_number(text.substr(0, cross), width) &&
                       (cross == std::string::npos || io::parse_number(text.substr(cross + 1), height));
    STIPPLE_REQUIRE(valid, "--size must be WIDTHxHEIGHT in pixels, got \"{}\"", text);
    return {width, cross == std::string::npos ? width : height};
}

void add_input_format(Arguments& app, InputFile& input) {
    app.option("--from", input.from, "Format of the input, when its name and content do not tell");
    app.option("--item", input.item, "Which cloud of a file that holds many, from 0").from_zero().no_default();
}

Option add_output(Arguments& app, OutputFile& output) {
    return app.option("-o,--output", output.path, "The file; - is standard output");
}

void add_output_format(Arguments& app, OutputFile& output) {
    app.option("--format", output.format, "Format of the output, when its name does not tell");
    app.flag("--ascii", output.writing.ascii, "Text instead of binary (PLY, PCD, STL)");
}

io::Format require_output(const OutputFile& output, const Common& common, std::string_view product) {
    STIPPLE_REQUIRE(!output.path.empty(), "the output path is empty");
    STIPPLE_REQUIRE(output.path != "-" || !output.format.empty(), "-o - needs --format");
    require_free_stdout(output.path, common);
    io::Format format{};
    try {
        format = output.format.empty() ? io::format_to_write(output.path) : io::format_by_name(output.format);
    } catch (const Error& error) {  // an output that cannot be told is a wrong argument, not a bad file
        throw Error(ErrorCode::bad_argument, error.place(), error.message(), error.hint());
    }
    if (!product.empty()) about_file(output.path, [&] { io::require_can_hold(format, product); });
    STIPPLE_REQUIRE(output.path != "-" || io::info_of(format).write, "HDF5 cannot be written to standard output");
    if (output.path != "-") require_writable(output.path, common.overwrite_mode());
    return format;
}

std::vector<io::Format> require_outputs(const std::vector<OutputFile>& outputs, const Common& common,
                                        std::string_view product) {
    std::vector<io::Format> formats;
    for (const OutputFile& output : outputs) formats.push_back(require_output(output, common, product));
    return formats;
}

std::vector<OutputFile> outputs_of(const OutputFile& output, const std::vector<data::CloudEntry>& entries) {
    const std::string& path = output.path;
    const bool is_in_folder = !path.empty() && path != "-" && (path.back() == '/' || is_folder(path));
    if (!is_in_folder) {
        STIPPLE_REQUIRE(entries.size() == 1, "{} clouds need a folder as output, got {}", entries.size(), path);
        return {output};
    }
    std::vector<OutputFile> outputs;
    std::set<std::string> taken;
    const std::string extension(
        io::info_of(io::format_by_name(output.format.empty() ? "ply" : output.format)).extensions[0]);
    for (const data::CloudEntry& entry : entries) {
        OutputFile one = output;
        one.path = fmt::format("{}{}{}{}.{}", path, path.back() == '/' ? "" : "/", stem_of(entry.path),
                               entry.item < 0 ? "" : fmt::format("_{}", entry.item), extension);
        STIPPLE_REQUIRE(taken.insert(one.path).second, "two clouds would both become {}", one.path);
        outputs.push_back(std::move(one));
    }
    return outputs;
}

void require_picture(const std::string& path, const Common& common) {
    if (path.empty()) return;
    const size_t dot = path.rfind('.');
    STIPPLE_REQUIRE(dot != std::string::npos && io::lower_case(path.substr(dot)) == ".png",
                    "{}: pictures are PNG, name it .png", path);
    require_writable(path, common.overwrite_mode());
}

PointCloud finite_points(const Mesh& mesh, StepReport& report) {
    const int64_t before = mesh.vertices.size();
    warn_of_faces(mesh.faces(), report);
    PointCloud cloud = drop_nonfinite(mesh.vertices);
    if (cloud.size() == 0) throw Error(ErrorCode::bad_file, before == 0 ? "holds no points" : "has no finite points");
    const int64_t dropped = before - cloud.size();
    if (dropped > 0)
        report.warnings.push_back(
            fmt::format("{} of {} points not finite, dropped", grouped(dropped), grouped(before)));
    report.fields["points"] = before;
    report.fields["non_finite"] = dropped;
    return cloud;
}

Mesh load_input(const InputFile& input, const Common& common, Result& result) {
    result.fields["inputs"] = Json::array({input.path});
    return load_with_progress(input.path, input.from, input.item, common, result.warnings);
}

PointCloud load_points(const InputFile& input, const Common& common, Result& result) {
    const Mesh mesh = load_with_progress(input.path, input.from, input.item, common, result.warnings);
    StepReport report;
    PointCloud cloud = about_file(input.path, [&] { return finite_points(mesh, report); });
    tell(report, input.path, result);
    return cloud;
}

void recentre(PointCloud& cloud) {
    const Bounds bounds = bounds_of(cloud);
    if (bounds.finite == 0) return;
    const std::array<double, 3> origin = choose_origin(bounds.min, bounds.max);
    for (int axis = 0; axis < 3; ++axis) {
        const auto at = static_cast<size_t>(axis);
        // A whole origin within the bounds: the difference has no more digits than the position.
        if (cloud.origin[at] != 0 || origin[at] == 0) continue;
        for (int64_t i = 0; i < cloud.size(); ++i) {
            float& x = cloud.positions.data()[3 * i + axis];
            x = static_cast<float>(x - origin[at]);
        }
        cloud.origin[at] = origin[at];
    }
}

void require_finite_faces(const Mesh& mesh, const std::string& path) {
    const float* positions = mesh.vertices.positions.data();
    for (const int32_t corner : mesh.triangles.span())
        for (int axis = 0; axis < 3; ++axis)
            if (!std::isfinite(positions[3 * static_cast<int64_t>(corner) + axis]))
                throw Error(ErrorCode::bad_file, Place{path}, fmt::format("vertex {} of a face is not finite", corner));
}

Mesh load_faces(const InputFile& input, const Common& common, Result& result) {
    Mesh mesh = load_with_progress(input.path, input.from, input.item, common, result.warnings);
    if (mesh.faces() == 0)
        throw Error(ErrorCode::bad_file, Place{input.path},
                    fmt::format("has {} points but no faces: a mesh is wanted", grouped(mesh.vertices.size())));
    require_finite_faces(mesh, input.path);
    recentre(mesh.vertices);
    return mesh;
}

void save_output(const Mesh& mesh, const OutputFile& output, io::Format format, const std::string& what,
                 const Common& common, Result& result) {
    if (!common.dry_run) {
        io::Warnings found;
        about_file(output.path, [&] {
            if (output.path != "-")
                return io::save(output.path, mesh, common.overwrite_mode(), output.writing, found, &format);
            StdoutSink sink;
            io::write(mesh, sink, format, output.writing, found);
            result.stdout_taken = true;
        });
        for (const std::string& warning : found) result.warnings.push_back(fmt::format("{}: {}", output.path, warning));
    }
    report_output(output, format, mesh.vertices.size(), mesh.faces(), what, common, result);
}

void report_output(const OutputFile& output, io::Format format, int64_t points, int64_t faces, const std::string& what,
                   const Common& common, Result& result) {
    result.fields["outputs"].push_back({{"path", output.path},
                                        {"format", io::info_of(format).name},
                                        {"points", points},
                                        {"faces", faces},
                                        {"written", !common.dry_run}});
    result.text += fmt::format("{} {}: {}\n", common.dry_run ? "would write" : "wrote", printable(output.path), what);
}

void save_text(const std::string& path, const std::string& text, std::string_view format, const Common& common,
               Result& result) {
    if (path.empty()) return;
    if (!common.dry_run) {
        AtomicFile file(path, common.overwrite_mode());
        file.write(text);
        file.commit();
    }
    report_file(path, format, common, result);
}

void save_picture(const std::string& path, const std::function<Image()>& draw, const Common& common, Result& result) {
    if (path.empty()) return;
    if (!common.dry_run) io::save_png(path, draw(), common.overwrite_mode());
    report_file(path, "png", common, result);
}

}  // namespace stipple::cli
