#include "stipple/tasks/edit.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/number_text.h"
#include "stipple/io/las.h"
#include "stipple/io/text.h"
#include "stipple/tasks/small_files.h"

namespace stipple::tasks {

using geometry::AffineTransform;
using geometry::Vector3;

const Fields& kept_points_fields() {
    static const Fields fields = {field<&KeptPoints::points>("points", "Points of the input"),
                                  field<&KeptPoints::kept>("kept", "Points that stay")};
    return fields;
}

const Fields& step_run_fields() {
    static const Fields fields = {field<&StepRun::step>("step", "Its command"),
                                  field<&StepRun::points>("points", "Points that it was given"),
                                  field<&StepRun::left>("left", "Points that it left"),
                                  field<&StepRun::seconds>("seconds", "Time of its work").unit("s")};
    return fields;
}

const Fields& run_totals_fields() {
    static const Fields fields = {field<&RunTotals::points>("points", "Points of the input"),
                                  field<&RunTotals::left>("left", "Points of the output")};
    return fields;
}

// ---- Crop

const Fields& crop_fields() {
    using Options = CropOptions;
    static const Fields fields = {
        field<&Options::box>("box", "Corners of a box; inf: no end").shown("X0 Y0 Z0 X1 Y1 Z1").may_be_infinite(),
        field<&Options::sphere>("sphere", "Centre and radius").shown("X Y Z R"),
        field<&Options::polygon>("polygon", "Corners in the ground plan, or a file with two numbers each")
            .shown("FILE | X Y X Y X Y..."),
        field<&Options::outside>("outside", "Keep what is outside instead")};
    return fields;
}

const Fields& cropped_fields() {
    static const Fields fields = {
        field<&Cropped::non_finite>("non_finite", "Points that are neither inside nor outside")};
    return fields;
}

geometry::Region region_of(const CropOptions& options) {
    geometry::Region region;
    STIPPLE_REQUIRE(options.box || options.sphere || !options.polygon.empty(),
                    "crop to what? Give --box, --sphere or --polygon");
    check_fields(crop_fields(), &options);
    if (options.box) {
        const auto& b = *options.box;
        region.box = {{b[0], b[1], b[2]}, {b[3], b[4], b[5]}};
        for (double& low : region.box->min)  // -inf would be read as an option
            if (low == HUGE_VAL) low = -HUGE_VAL;
    }
    if (options.sphere) {
        const auto& s = *options.sphere;
        region.sphere = {{s[0], s[1], s[2]}, s[3]};
    }
    if (options.polygon.size() == 1) {
        region.polygon = load_polygon(options.polygon[0]);
    } else if (!options.polygon.empty()) {
        STIPPLE_REQUIRE(options.polygon.size() % 2 == 0 && options.polygon.size() >= 6,
                        "--polygon takes a file, or x and y of at least 3 corners; got {} numbers",
                        options.polygon.size());
        for (size_t i = 0; i < options.polygon.size(); i += 2) {
            std::array<double, 2> corner{};
            for (size_t axis = 0; axis < 2; ++axis)
                STIPPLE_REQUIRE(io::parse_number(options.polygon[i + axis], corner[axis]),
                                "--polygon: \"{}\" is not a number", options.polygon[i + axis]);
            region.polygon.push_back(corner);
        }
        if (region.polygon.front() == region.polygon.back()) region.polygon.pop_back();
    }
    geometry::require_region(region);
    return region;
}

std::vector<uint8_t> crop_mask(const PointCloud& piece, const geometry::Region& region, bool outside,
                               Cropped& cropped) {
    const geometry::Side wanted = outside ? geometry::Side::outside : geometry::Side::inside;
    const std::vector<geometry::Side> sides = geometry::sides_of(piece, region);
    std::vector<uint8_t> mask(sides.size());
    for (size_t i = 0; i < mask.size(); ++i) {
        mask[i] = sides[i] == wanted;
        cropped.non_finite += sides[i] == geometry::Side::nowhere;
    }
    return mask;
}

// ---- Filter

const Fields& filter_fields() {
    static const Fields fields = {
        field<&FilterOptions::expression>("expression", "Over x y z and attributes, in quotes"),
        field<&FilterOptions::invert>("invert", "Keep the others instead")};
    return fields;
}

// ---- Transform

const Fields& transform_fields() {
    using Options = TransformOptions;
    static const Fields fields = {
        field<&Options::matrix>("matrix", "1. A 4 x 4 matrix: text or .npy").shown("FILE"),
        field<&Options::apply>("apply", "1. The same, as --transform-to of a command wrote it").shown("FILE"),
        field<&Options::centre>("centre", "2. Move the middle of the bounding box to 0 0 0"),
        field<&Options::swap>("swap", "3. New x, y, z by name: xzy; x-zy turns y up into z up").shown("AXES"),
        field<&Options::scale>("scale", "4. By one factor, or one for each axis").shown("S | SX SY SZ"),
        field<&Options::rotate>("rotate", "5. About x, y, z or a vector: z 30, or 1 1 0 30").shown("AXIS DEGREES"),
        field<&Options::translate>("translate", "6. Add to every point").shown("X Y Z"),
        field<&Options::about>("about", "The point that 3 to 5 leave where it is").shown("X Y Z=0 0 0"),
        field<&Options::invert>("invert", "The inverse of all that")};
    return fields;
}

const Fields& transformed_fields() {
    static const Fields fields = {
        field<&Transformed::points>("points", "Points that were moved"),
        field<&Transformed::transform>("transform", "The 4 x 4 matrix of all that was done, by rows")};
    return fields;
}

Transformed transformed_of(int64_t points, const AffineTransform& transform) {
    Transformed made{.points = points};
    for (size_t row = 0; row < 3; ++row) {
        std::copy_n(transform.linear[row].begin(), 3, made.transform[row].begin());
        made.transform[row][3] = transform.translation[row];
    }
    made.transform[3][3] = 1;
    return made;
}

namespace {

/// --rotate z 30, --rotate 1 1 0 30.
AffineTransform rotation_of(const std::vector<std::string>& words) {
    STIPPLE_REQUIRE(words.size() == 2 || words.size() == 4,
                    "--rotate takes an axis and degrees: z 30, or 1 1 0 30; got {} words", words.size());
    Vector3 axis = {};
    if (words.size() == 2) {
        const std::string& name = words[0];
        STIPPLE_REQUIRE(name == "x" || name == "y" || name == "z", "--rotate: the axis must be x, y or z, got \"{}\"",
                        name);
        axis[static_cast<size_t>(name[0] - 'x')] = 1;
    } else {
        for (size_t i = 0; i < 3; ++i)
            STIPPLE_REQUIRE(io::parse_number(words[i], axis[i]), "--rotate: \"{}\" is not a number", words[i]);
    }
    double degrees = 0;
    STIPPLE_REQUIRE(io::parse_number(words.back(), degrees) && std::isfinite(degrees),
                    "--rotate: \"{}\" is not a number of degrees", words.back());
    return geometry::to_affine(geometry::rotation_about(axis, degrees * M_PI / 180));
}

/// All but `centre`, which needs the points.
AffineTransform without_centre(const TransformOptions& options, AffineTransform transform) {
    const Vector3 point = options.about.value_or(Vector3{});
    if (!options.swap.empty()) transform = about(geometry::axis_swap(options.swap), point) * transform;
    if (!options.scale.empty()) {
        STIPPLE_REQUIRE(options.scale.size() == 1 || options.scale.size() == 3,
                        "--scale takes one number or three, got {}", options.scale.size());
        AffineTransform scaling;
        for (size_t axis = 0; axis < 3; ++axis) {
            const double s = options.scale[options.scale.size() == 1 ? 0 : axis];
            STIPPLE_REQUIRE(s != 0, "--scale must be finite and not 0, got {}", s);
            scaling.linear[axis][axis] = s;
        }
        transform = about(scaling, point) * transform;
    }
    if (!options.rotate.empty()) transform = about(rotation_of(options.rotate), point) * transform;
    if (options.translate) transform = AffineTransform{AffineTransform{}.linear, *options.translate} * transform;
    return transform;
}

/// The middle of the box around the points, moved to 0.
AffineTransform centring(const Bounds& all) {
    AffineTransform shift;
    for (size_t axis = 0; axis < 3 && all.finite > 0; ++axis)
        shift.translation[axis] = -0.5 * (all.min[axis] + all.max[axis]);
    return shift;
}

}  // namespace

void check_options(const TransformOptions& options) {
    const bool is_given = !options.matrix.empty() || !options.apply.empty() || !options.swap.empty() ||
                          !options.scale.empty() || !options.rotate.empty() || options.translate || options.centre;
    STIPPLE_REQUIRE(is_given, "transform how? Give --matrix, --rotate, --translate, --scale, --swap or --centre");
    STIPPLE_REQUIRE(options.matrix.empty() || options.apply.empty(), "--apply and --matrix are the same: give one");
    STIPPLE_REQUIRE(!options.about || !options.swap.empty() || !options.scale.empty() || !options.rotate.empty(),
                    "--about is for --rotate, --scale and --swap");
    check_fields(transform_fields(), &options);
    without_centre(options, {});
}

AffineTransform first_matrix(const TransformOptions& options) {
    const std::string& file = options.matrix.empty() ? options.apply : options.matrix;
    return file.empty() ? AffineTransform{} : load_affine(file);
}

AffineTransform transform_of(const TransformOptions& options, const AffineTransform& first,
                             const std::function<Bounds(const AffineTransform& before)>& bounds_after) {
    check_options(options);
    const AffineTransform before = options.centre ? centring(bounds_after(first)) * first : first;
    const AffineTransform transform = without_centre(options, before);
    return options.invert ? inverse(transform) : transform;
}

Bounds moved_bounds(const Mesh& piece, const AffineTransform& transform) {
    if (transform == AffineTransform{}) return bounds_of(piece.vertices);
    return bounds_of(geometry::transformed(piece, transform).vertices);
}

std::optional<FileFacts::Grid> moved_grid(const FileFacts& facts, const std::optional<Bounds>& box,
                                          const AffineTransform& transform) {
    if (!facts.las || !facts.grid || !box || box->finite == 0) return std::nullopt;
    Bounds moved;
    for (int corner = 0; corner < 8; ++corner) {
        Vector3 to = transform.translation;
        for (size_t row = 0; row < 3; ++row)
            for (size_t axis = 0; axis < 3; ++axis)
                to[row] += transform.linear[row][axis] * (corner >> axis & 1 ? box->min : box->max)[axis];
        for (size_t axis = 0; axis < 3; ++axis) {
            if (!std::isfinite(to[axis])) return std::nullopt;
            moved.min[axis] = corner == 0 ? to[axis] : std::min(moved.min[axis], to[axis]);
            moved.max[axis] = corner == 0 ? to[axis] : std::max(moved.max[axis], to[axis]);
        }
    }
    FileFacts::Grid grid = *facts.grid;
    const double finest = *std::min_element(grid.scale.begin(), grid.scale.end());
    double size = 0;  // by how much lengths grow, at least
    for (size_t row = 0; row < 3; ++row)
        size = std::max(size, std::hypot(transform.linear[row][0], transform.linear[row][1], transform.linear[row][2]));
    for (size_t axis = 0; axis < 3; ++axis) {
        if (std::abs(size - 1) > 1e-9) grid.scale[axis] = finest * size;
        const double extent = moved.max[axis] - moved.min[axis];
        if (!(grid.scale[axis] > 0) || extent / 2 / grid.scale[axis] > io::kMostOfGrid) return std::nullopt;
        grid.offset[axis] = std::floor(0.5 * (moved.min[axis] + moved.max[axis]));
    }
    return grid;
}

// ---- Merge

namespace {

const Fields& merged_file_fields() {
    static const Fields fields = {
        field<&MergedFile::path>("path", "The file"), field<&MergedFile::points>("points", "Its points"),
        field<&MergedFile::source>("source", "Its place among the inputs, from 0: what --source-id gives its points")};
    return fields;
}

}  // namespace

const Fields& merge_fields() {
    static const Fields fields = {
        field<&MergeOptions::source_id>("source_id", "Add an attribute: the file of each point, from 0").shown("NAME"),
        field<&MergeOptions::missing>("missing", "Attributes that some files lack; fill: with 0, or NaN")
            .words(kMissingAttributesWords)};
    return fields;
}

const Fields& merged_fields() {
    static const Fields fields = {objects_field<&Merged::files>("files", merged_file_fields, "The inputs, in order"),
                                  field<&Merged::points>("points", "Points of the output"),
                                  field<&Merged::attributes>("attributes", "Attributes of the output")};
    return fields;
}

Attribute source_ids(const std::string& name, int64_t points, size_t source) {
    Attribute ids(name, DType::u16, points, 1);
    std::fill_n(ids.as<uint16_t>().data(), points, static_cast<uint16_t>(source));
    return ids;
}

double spacing_of_merged(const Bounds& all) {
    const std::array<double, 3> origin = choose_origin(all.min, all.max);
    double spacing = 0;
    for (size_t axis = 0; axis < 3 && all.finite > 0; ++axis) {
        const double farthest =
            std::max(std::abs(all.min[axis] - origin[axis]), std::abs(all.max[axis] - origin[axis]));
        spacing = std::max(spacing, farthest * 0x1p-23);
    }
    return spacing;
}

// ---- Split

const Fields& split_fields() {
    using Options = SplitOptions;
    static const Fields fields = {
        field<&Options::by>("by", "A file for each value of this attribute").shown("ATTRIBUTE"),
        field<&Options::tile>("tile", "A file for each square of the ground plan, this wide")
            .unit("unit of the cloud")
            .shown("SIZE")
            .above(0),
        field<&Options::count>("count", "So many points a file, in their order").shown("N").from(1),
        field<&Options::most>("most", "Refuse to make more files than this").from(0)};
    return fields;
}

const Fields& split_parts_fields() {
    static const Fields fields = {field<&SplitParts::points>("points", "Points of the input"),
                                  field<&SplitParts::parts>("parts", "Files that they go into")};
    return fields;
}

geometry::CloudSplitter splitter_of(const SplitOptions& options) {
    STIPPLE_REQUIRE(!options.by.empty() + options.tile.has_value() + options.count.has_value() == 1,
                    "split how? Give one of --by ATTRIBUTE, --tile SIZE and --count N");
    check_fields(split_fields(), &options);
    if (!options.by.empty()) return geometry::CloudSplitter::by_attribute(options.by);
    if (options.count) return geometry::CloudSplitter::by_count(*options.count);
    return geometry::CloudSplitter::by_tile(*options.tile);
}

// ---- Convert

const Fields& convert_fields() {
    using Options = ConvertOptions;
    using Writing = io::WriteOptions;
    static const Fields fields = {
        field<&Options::writing, &Writing::ascii>("ascii", "Text instead of binary (PLY, PCD, STL)"),
        field<&Options::writing, &Writing::compressed>("compressed", "Compressed binary (PCD)"),
        field<&Options::drop_nonfinite>("drop_nonfinite", "Leave out points with NaN or infinite coordinates"),
        field<&Options::writing, &Writing::keep_16_bit>(
            "keep_16_bit", "Colors of 16 bits stay so (PLY, PCD, XYZRGB), not 8 bits as usual"),
        field<&Options::scale>("scale", "LAS: unit of the integers, for all axes or each; that of the input")
            .shown("S [S S]")
            .above(0),
        field<&Options::writing, &Writing::offset>("offset", "LAS: coordinates of the integer 0; those of the input")
            .shown("X Y Z"),
        field<&Options::shift>("shift", "Added to the coordinates, as -500000 -4649000 0 brings UTM near 0")
            .shown("X Y Z")};
    return fields;
}

io::WriteOptions writing_of(const ConvertOptions& options) {
    check_fields(convert_fields(), &options);
    io::WriteOptions writing = options.writing;
    const std::vector<double>& scale = options.scale;
    STIPPLE_REQUIRE(scale.empty() || scale.size() == 1 || scale.size() == 3,
                    "--scale takes one number or three numbers, got {}", scale.size());
    if (!scale.empty()) writing.scale = {scale.front(), scale[scale.size() / 2], scale.back()};
    return writing;
}

void convert(Mesh& mesh, const ConvertOptions& options, io::Format to, io::Warnings& of_input,
             io::Warnings& of_output) {
    if (options.drop_nonfinite) {
        STIPPLE_REQUIRE(mesh.faces() == 0, "--drop-nonfinite is for clouds, this has faces");
        const int64_t before = mesh.vertices.size();
        mesh.vertices = drop_nonfinite(mesh.vertices);
        const int64_t left = mesh.vertices.size();
        if (left == 0 && before > 0) throw Error(ErrorCode::bad_file, "has no finite points");
        if (left < before)
            of_input.push_back(
                fmt::format("{} of {} points not finite, dropped", grouped(before - left), grouped(before)));
    }
    if (!options.shift) return;
    const std::array<double, 3>& shift = *options.shift;
    if (to != io::Format::pcd) return shift_origin(mesh.vertices, shift);
    // PCD remembers an origin: other positions, in the same places as before.
    const double worst = move_origin(mesh.vertices, {0 - shift[0], 0 - shift[1], 0 - shift[2]});
    double told = 0;  // half a unit of the file tells points apart
    if (const auto& grid = mesh.vertices.facts.grid)
        told = 0.5 * *std::min_element(grid->scale.begin(), grid->scale.end());
    if (worst > told)
        of_output.push_back(fmt::format("with this --shift float32 rounds coordinates by up to {:.3g}", worst));
}

}  // namespace stipple::tasks
