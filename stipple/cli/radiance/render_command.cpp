#include "stipple/cli/common/table.h"
#include "stipple/cli/radiance/commands.h"
#include "stipple/cli/radiance/scene_arguments.h"
#include "stipple/cli/radiance/view_files.h"
#include "stipple/core/terminal.h"
#include "stipple/radiance/camera_path.h"
#include "stipple/radiance/render.h"

namespace stipple::cli {
namespace {

struct RadianceRenderOptions {
    std::string field, output, path, size;
    SceneArguments scene;
    std::vector<int64_t> cameras;
    std::vector<double> eye, aim;
    int frames = 60, fps = 30;
    double elevation = NAN, fov = 0;
    bool geometry = false, video = false;
};

Vec3d about_origin(const std::vector<double>& place, const radiance::Field& field) {
    return {place[0] - field.origin[0], place[1] - field.origin[1], place[2] - field.origin[2]};
}

radiance::Lens lens_of(const RadianceRenderOptions& options) {
    radiance::Lens lens;
    if (!options.size.empty()) {
        const auto [width, height] = parse_size(options.size);
        constexpr int64_t kMostPixels = 65535;
        STIPPLE_REQUIRE(width >= 1 && height >= 1 && width <= kMostPixels && height <= kMostPixels,
                        "--size {}: sides of 1 to {} pixels are possible", options.size, kMostPixels);
        lens.width = static_cast<int32_t>(width), lens.height = static_cast<int32_t>(height);
    }
    lens.degrees = options.fov;
    return lens;
}

void require_one_source(const RadianceRenderOptions& options) {
    const int sources =
        !options.path.empty() + !options.cameras.empty() + !options.eye.empty() + !options.scene.folder.empty();
    STIPPLE_REQUIRE(sources == 1, "which views? Give one of --data, --path, --camera and --eye");
    STIPPLE_REQUIRE(options.aim.empty() || !options.eye.empty(), "--aim is for --eye");
    STIPPLE_REQUIRE(options.frames >= 1 && options.frames <= kMostViews, "--frames must be 1 to {}, got {}", kMostViews,
                    options.frames);
    STIPPLE_REQUIRE(options.fov == 0 || (options.fov >= 1 && options.fov <= 170), "--fov must be 1 to 170, got {}",
                    options.fov);
    STIPPLE_REQUIRE(options.fps >= 1 && options.fps <= 240, "--fps must be 1 to 240, got {}", options.fps);
    STIPPLE_REQUIRE(std::isnan(options.elevation) || std::abs(options.elevation) <= 90,
                    "--elevation must be -90 to 90, got {}", options.elevation);
    const bool has_size = !options.cameras.empty() || !options.scene.folder.empty();
    STIPPLE_REQUIRE(!has_size || (options.size.empty() && options.fov == 0),
                    "--size and --fov are for --path and --eye: other cameras have theirs");
}

std::vector<radiance::Camera> cameras_of(const radiance::Field& field, const RadianceRenderOptions& options) {
    const radiance::Lens lens = lens_of(options);
    if (!options.path.empty()) return radiance::orbit(field, options.frames, options.elevation, lens);
    if (!options.eye.empty()) {
        const Box<float>& box = field.grid.box;
        Vec3d aim;
        for (int axis = 0; axis < 3; ++axis) aim[axis] = 0.5 * (box.low[axis] + box.high[axis]);
        if (!options.aim.empty()) aim = about_origin(options.aim, field);
        return {radiance::look_at(field, about_origin(options.eye, field), aim, radiance::up_of(field), lens)};
    }
    std::vector<radiance::Camera> cameras;
    const auto known = static_cast<int64_t>(field.cameras.size());
    for (int64_t number : options.cameras) {
        STIPPLE_REQUIRE(number >= 0 && number < known, "--camera {}: the field has {} camera{}", number, known,
                        known == 1 ? "" : "s");
        cameras.push_back(field.cameras[static_cast<size_t>(number)]);
    }
    return cameras;
}

Result run_radiance_render(const RadianceRenderOptions& options, const Common& common) {
    require_one_source(options);
    lens_of(options);
    require_writable_folder(options.output, common.overwrite_mode());
    Result result;
    result.fields["inputs"] = Json::array({options.field});
    const radiance::Field field = radiance::load_field(options.field);
    std::vector<radiance::Photograph> truth;
    bool alpha_is_unknown = false;
    std::vector<radiance::Camera> cameras;
    if (!options.scene.folder.empty()) {
        radiance::Scene scene = load_photographs(options.scene.folder, options.scene.options, common,
                                                 options.scene.split == radiance::SceneSplit::train);
        alpha_is_unknown = scene.alpha_is_unknown;
        truth = take_split(scene, options.scene, field);
        for (const radiance::Photograph& photograph : truth) cameras.push_back(photograph.camera);
    } else {
        cameras = about_file(options.field, [&] { return cameras_of(field, options); });
    }
    STIPPLE_REQUIRE(cameras.size() <= kMostViews, "{} views, at most {}", cameras.size(), kMostViews);
    const auto views = static_cast<int64_t>(cameras.size());
    result.fields["views"] = views;
    result.fields["outputs"] = Json::array({{{"path", options.output}, {"written", !common.dry_run}}});
    if (common.dry_run) {
        result.text =
            fmt::format("would write {}: {} view{}\n", printable(options.output), views, views == 1 ? "" : "s");
        return result;
    }
    radiance::Renderer renderer(field, parse_device(common.device));
    AtomicFolder folder(options.output, common.overwrite_mode());
    Progress bar("render", views, progress_mode(common), "views");
    double seconds = 0;
    std::vector<radiance::ViewScore> scores;
    for (int64_t i = 0; i < views; ++i) {
        const radiance::RenderedView view = renderer.render(cameras[static_cast<size_t>(i)], {options.geometry});
        seconds += renderer.seconds() / static_cast<double>(views);
        save_view(folder.path(), i, view);
        if (!truth.empty()) {
            scores.push_back(score_view(view, truth[static_cast<size_t>(i)], field.background, alpha_is_unknown));
            scores.back().seconds = renderer.seconds();
        }
        bar.add();
    }
    bool has_video = false;
    if (options.video) {
        const std::string missing = make_video(folder.path(), options.fps);
        has_video = missing.empty();
        if (!has_video) result.warnings.push_back(fmt::format("no video: {}", missing));
    }
    folder.commit();
    result.fields["seconds_per_view"] = seconds;
    result.fields["video"] = has_video;
    if (!scores.empty()) {
        const radiance::ViewScores all = radiance::mean_of(std::move(scores));
        result.text = format_table(score_table(all), common.table);
        result.fields.update(to_json(radiance::view_scores_fields(), &all));
        if (!common.table.empty()) return result;
        result.text += "\n";
    }
    result.text +=
        fmt::format("wrote {}: {} view{} of {} x {}{}{}\n", printable(options.output), views, views == 1 ? "" : "s",
                    cameras[0].width, cameras[0].height, options.geometry ? " with depth, normals and alpha" : "",
                    has_video ? ", video.mp4" : "");
    return result;
}

}  // namespace

Command add_radiance_render(Arguments& group, Common& common) {
    auto options = std::make_shared<RadianceRenderOptions>();
    Arguments& app = group.command("render", "Draw a field from new places: a folder of pictures, a video");
    Option input = app.option("FIELD", options->field, "A file that stipple radiance train wrote");
    Option output = app.option("-o,--output", options->output, "The folder").text("FOLDER");
    app.option("--data", options->scene.folder, "The views of photographs, and how near they come").text("FOLDER");
    add_split_option(app, options->scene);
    add_scene_options(app, options->scene.options);
    app.option("--path", options->path, "orbit: once around it").one_of({"orbit"}).text("orbit");
    app.option("--frames", options->frames, "--path: how many views");
    app.option("--elevation", options->elevation, "--path: degrees above it; else as its cameras have it").text("DEG");
    app.option("--eye", options->eye, "One view from this place").count(3).text("X Y Z");
    app.option("--aim", options->aim, "--eye: what it looks at; else the middle").count(3).text("X Y Z");
    app.option("--camera", options->cameras, "Those of the field's own cameras, from 0").text("N...");
    app.option("--size", options->size, "Pixels: 800x600, or 800 for a square; else as its cameras have them");
    app.option("--fov", options->fov, "Degrees across the picture; else as its cameras have them")
        .text("DEG")
        .no_default();
    app.flag("--geometry", options->geometry, "Depth (.npy and .png), normals and alpha too");
    app.flag("--video", options->video, "video.mp4 too, where ffmpeg is");
    app.option("--fps", options->fps, "--video: frames a second");
    app.footer(
        "Example:\n  stipple radiance render lego.field --path orbit --frames 120 --video -o turn\n"
        "  stipple radiance render lego.field --eye 3 2 1 --size 400 --geometry -o view");
    return {&app, [options, &common] { return run_radiance_render(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
