// Scenes of COLMAP models.

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "stipple/core/folder.h"
#include "stipple/io/colmap.h"
#include "stipple/radiance/scene/photographs.h"
#include "stipple/radiance/scene/planned_view.h"

namespace stipple::radiance {
namespace {

constexpr size_t kLeastPoints = 8;         // fewer tell neither box nor depths: cameras do
constexpr double kBoxShare = 0.01;         // of the points, outside on each side
constexpr double kBoxMargin = 0.1;         // of the extent, on each side
constexpr double kDepthShare = 0.005;      // of what cameras see, nearer or farther
constexpr double kDepthMargin = 0.1;       // of these depths
constexpr size_t kMostDepths = 4'000'000;  // where no tracks tell who sees a point

struct FoundModel {
    std::string folder;
    io::ColmapForm form = io::ColmapForm::text;
    io::ColmapModel model;
};

/// Of several models the one with the most images, of equal ones the first.
bool find_model(const std::string& folder, FoundModel& best) {
    std::vector<std::string> candidates;
    const std::string sparse = folder + "/sparse";
    if (is_folder(sparse)) {
        for (const std::string& name : list_folder(sparse))
            if (is_folder(sparse + "/" + name)) candidates.push_back(sparse + "/" + name);
        candidates.push_back(sparse);
    }
    candidates.push_back(folder);
    bool found = false;
    for (const std::string& candidate : candidates) {
        io::ColmapForm form = io::ColmapForm::text;
        if (!io::has_colmap(candidate, form)) continue;
        io::ColmapModel model = io::load_colmap(candidate, form);
        if (found && model.images.size() <= best.model.images.size()) continue;
        best = {candidate, form, std::move(model)};
        found = true;
    }
    return found;
}

/// The value that `share` of the values lies below; reorders them.
double quantile(std::vector<double>& values, double share) {
    const auto rank = static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
    return values[rank];
}

void set_box(const io::ColmapModel& model, Scene& scene) {
    if (model.points.size() < kLeastPoints) return;
    double low[3], high[3], longest = 0;
    std::vector<double> values(model.points.size());
    for (size_t axis = 0; axis < 3; ++axis) {
        for (size_t i = 0; i < values.size(); ++i) values[i] = model.points[i].position[axis];
        low[axis] = quantile(values, kBoxShare);
        high[axis] = quantile(values, 1 - kBoxShare);
        longest = std::max(longest, high[axis] - low[axis]);
    }
    if (!(longest > 0)) return;
    Box<float> box = {};
    for (size_t axis = 0; axis < 3; ++axis) {
        // A flat scene gets some room on its thin side too.
        const double margin = kBoxMargin * std::max(high[axis] - low[axis], 0.1 * longest);
        box.low[axis] = static_cast<float>(low[axis] - margin - scene.origin[axis]);
        box.high[axis] = static_cast<float>(high[axis] + margin - scene.origin[axis]);
    }
    scene.box = box;
}

double depth_of(const io::TransformsFrame& frame, const std::array<double, 3>& point) {
    const auto& m = frame.to_world;
    double depth = 0;
    for (size_t axis = 0; axis < 3; ++axis) depth -= m[4 * axis + 2] * (point[axis] - m[4 * axis + 3]);
    return depth;
}

bool is_in_picture(const io::TransformsFrame& frame, const std::array<double, 3>& point, double depth) {
    const auto& m = frame.to_world;
    double x = 0, y = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
        x += m[4 * axis] * (point[axis] - m[4 * axis + 3]);
        y -= m[4 * axis + 1] * (point[axis] - m[4 * axis + 3]);
    }
    const double u = frame.lens.fx * x / depth + frame.lens.cx, v = frame.lens.fy * y / depth + frame.lens.cy;
    return u >= 0 && v >= 0 && u <= static_cast<double>(frame.lens.width) &&
           v <= static_cast<double>(frame.lens.height);
}

/// Depths of points in the images that saw them; where no track tells, in all that they project into.
std::vector<double> seen_depths(const io::ColmapModel& model, const std::vector<PlannedView>& views) {
    std::vector<double> depths;
    const auto add = [&](const PlannedView& view, const io::ColmapPoint& point, bool check) {
        const double depth = depth_of(view.frame, point.position);
        if (depth > 0 && std::isfinite(depth) && (!check || is_in_picture(view.frame, point.position, depth)))
            depths.push_back(depth);
    };
    if (!model.track.empty()) {
        std::unordered_map<uint32_t, size_t> by_id;  // views are in the order of images
        for (size_t i = 0; i < model.images.size(); ++i) by_id.emplace(model.images[i].id, i);
        for (size_t i = 0; i < model.points.size(); ++i)
            for (const uint32_t image : model.track_of(i))
                if (const auto found = by_id.find(image); found != by_id.end())
                    add(views[found->second], model.points[i], false);
        return depths;
    }
    const size_t step = 1 + model.points.size() * views.size() / kMostDepths;
    for (const PlannedView& view : views)
        for (size_t i = 0; i < model.points.size(); i += step) add(view, model.points[i], true);
    return depths;
}

void set_depths(const io::ColmapModel& model, const std::vector<PlannedView>& views, Scene& scene) {
    std::vector<double> depths = seen_depths(model, views);
    if (depths.size() < kLeastPoints) return set_depths_by_focus(views, scene);
    scene.near = static_cast<float>((1 - kDepthMargin) * quantile(depths, kDepthShare));
    scene.far = static_cast<float>((1 + kDepthMargin) * quantile(depths, 1 - kDepthShare));
}

PointCloud cloud_of(const io::ColmapModel& model, const std::array<double, 3>& origin) {
    const auto n = static_cast<int64_t>(model.points.size());
    PointCloud cloud(n);
    cloud.origin = origin;
    cloud.attributes.emplace_back("color", DType::u8, n, 3);
    uint8_t* color = cloud.attributes[0].as<uint8_t>().data();
    for (size_t i = 0; i < model.points.size(); ++i) {
        for (size_t axis = 0; axis < 3; ++axis) {
            cloud.positions.data()[3 * i + axis] = static_cast<float>(model.points[i].position[axis] - origin[axis]);
            color[3 * i + axis] = model.points[i].color[axis];
        }
    }
    return cloud;
}

std::vector<PlannedView> model_views(const FoundModel& found, const std::string& pictures) {
    std::unordered_map<uint32_t, const io::ColmapCamera*> cameras;
    for (const io::ColmapCamera& camera : found.model.cameras) cameras.emplace(camera.id, &camera);
    const char* extension = found.form == io::ColmapForm::text ? "txt" : "bin";
    std::vector<PlannedView> views;
    for (const io::ColmapImage& image : found.model.images) {
        PlannedView view;
        view.told_by = fmt::format("{}/images.{}", found.folder, extension);
        view.path = find_picture(pictures, image.name, view.told_by);
        view.told_by = fmt::format("{}/cameras.{}", found.folder, extension);
        view.frame.file_path = image.name;
        view.frame.lens = cameras.at(image.camera_id)->lens;
        const std::array<double, 12> pose = io::pose_of(image);
        std::copy(pose.begin(), pose.end(), view.frame.to_world.begin());
        view.frame.to_world[15] = 1;
        views.push_back(std::move(view));
    }
    return views;
}

}  // namespace

bool load_colmap_scene(const std::string& folder, const SceneOptions& options, Scene& scene) {
    FoundModel found;
    if (!find_model(folder, found)) return false;
    if (found.model.images.empty())
        throw Error(ErrorCode::bad_file, Place{found.folder, {}, {}}, "the model has no registered image");
    scene.source = found.form == io::ColmapForm::text ? "colmap text" : "colmap binary";
    const std::string pictures = picture_folder(folder);
    std::vector<PlannedView> all = model_views(found, pictures), train, test;
    scene.listed_images =
        std::max(static_cast<int64_t>(all.size()), static_cast<int64_t>(list_pictures(pictures).size()));
    scene.origin = origin_of(all);
    set_box(found.model, scene);
    set_depths(found.model, all, scene);
    scene.sparse_points = cloud_of(found.model, scene.origin);
    split_views(std::move(all), options.test_every, train, test);
    PictureFacts facts;
    scene.train = read_views(train, scene.origin, options.reduce, facts);
    if (!options.train_only) scene.test = read_views(test, scene.origin, options.reduce, facts);
    scene.has_alpha = facts.has_alpha || facts.has_unknown;
    scene.alpha_is_unknown = facts.has_unknown && !facts.has_alpha;
    return true;
}

io::ColmapModel to_colmap(const std::vector<Photograph>& photographs, const std::array<double, 3>& origin,
                          const std::function<std::string(const Photograph&)>& name) {
    io::ColmapModel model;
    for (const Photograph& photograph : photographs) {
        const Camera& camera = photograph.camera;
        const io::Lens lens = {camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy};
        const auto is_same = [&](const io::ColmapCamera& other) {
            return other.lens.width == lens.width && other.lens.height == lens.height && other.lens.fx == lens.fx &&
                   other.lens.fy == lens.fy && other.lens.cx == lens.cx && other.lens.cy == lens.cy;
        };
        auto found = std::find_if(model.cameras.begin(), model.cameras.end(), is_same);
        if (found == model.cameras.end()) {
            const auto id = static_cast<uint32_t>(model.cameras.size() + 1);
            found = model.cameras.insert(found, {id, io::ColmapCameraModel::pinhole, lens});
        }
        io::ColmapImage image;
        image.id = static_cast<uint32_t>(model.images.size() + 1);
        image.camera_id = found->id;
        image.name = name(photograph);
        std::array<double, 12> pose = {};
        for (size_t i = 0; i < 12; ++i) pose[i] = camera.to_world[i] + (i % 4 == 3 ? origin[i / 4] : 0);
        io::set_pose(image, pose);
        model.images.push_back(std::move(image));
    }
    return model;
}

}  // namespace stipple::radiance
