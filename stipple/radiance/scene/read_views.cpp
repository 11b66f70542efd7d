#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/core/program_files.h"
#include "stipple/io/image_file.h"
#include "stipple/radiance/scene/pixels.h"
#include "stipple/radiance/scene/planned_view.h"

namespace stipple::radiance {
namespace {

constexpr double kLargePosition = 1000;  // float32 counts in steps of 0.06 mm there

/// The pixels that the camera's numbers count; see load_scene.
Image load_counted(const PlannedView& view) {
    int orientation = 1;
    Image image = io::load_image_as_stored(view.path, orientation);
    const io::Lens& lens = view.frame.lens;
    if (lens.width == 0 || (image.width() == lens.width && image.height() == lens.height)) return image;
    if (orientation >= 5 && image.width() == lens.height && image.height() == lens.width)
        return io::turned_upright(image, orientation);
    throw Error(ErrorCode::bad_file, Place{view.path, {}, {}},
                fmt::format("{} x {} pixels, and {} says {} x {}", image.width(), image.height(), view.told_by,
                            lens.width, lens.height));
}

Camera camera_of(const PlannedView& view, const io::Lens& lens, const std::array<double, 3>& origin, int reduce) {
    Camera camera;
    camera.width = static_cast<int32_t>(lens.width / reduce);
    camera.height = static_cast<int32_t>(lens.height / reduce);
    camera.fx = static_cast<float>(lens.fx / reduce), camera.fy = static_cast<float>(lens.fy / reduce);
    camera.cx = static_cast<float>(lens.cx / reduce), camera.cy = static_cast<float>(lens.cy / reduce);
    for (size_t i = 0; i < 12; ++i)
        camera.to_world[i] = static_cast<float>(view.frame.to_world[i] - (i % 4 == 3 ? origin[i / 4] : 0));
    return camera;
}

Photograph read_view(const PlannedView& view, const std::array<double, 3>& origin, int reduce, PictureFacts& facts) {
    Photograph photograph;
    photograph.file = view.path;
    photograph.pixels = to_rgba(load_counted(view));
    const io::Lens lens = io::lens_of(view.frame, photograph.pixels.width(), photograph.pixels.height());
    facts.has_alpha = has_transparent(photograph.pixels);
    if (lens.is_distorted()) {
        photograph.pixels = undistorted(photograph.pixels, lens);
        facts.has_unknown = !facts.has_alpha && has_transparent(photograph.pixels);
    }
    if (lens.width < reduce || lens.height < reduce)
        throw Error(ErrorCode::bad_argument, Place{view.path, {}, {}},
                    fmt::format("{} x {} pixels cannot be reduced by {}", lens.width, lens.height, reduce));
    if (reduce > 1) photograph.pixels = reduced(photograph.pixels, reduce);
    photograph.camera = camera_of(view, lens, origin, reduce);
    return photograph;
}

}  // namespace

std::vector<Photograph> read_views(const std::vector<PlannedView>& views, const std::array<double, 3>& origin,
                                   int reduce, PictureFacts& facts) {
    std::vector<Photograph> photographs(views.size());
    std::vector<PictureFacts> each(views.size());
    parallel_for(static_cast<int64_t>(views.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const auto at = static_cast<size_t>(i);
            photographs[at] = read_view(views[at], origin, reduce, each[at]);
        }
    });
    for (const PictureFacts& one : each) {
        facts.has_alpha |= one.has_alpha;
        facts.has_unknown |= one.has_unknown;
    }
    return photographs;
}

std::string find_picture(const std::string& folder, const std::string& name, const std::string& told_by) {
    const std::string path = folder + "/" + name;
    if (is_file(path)) return path;
    for (const char* extension : {".png", ".jpg", ".jpeg", ".PNG", ".JPG", ".JPEG"})
        if (is_file(path + extension)) return path + extension;
    const bool has_extension = name.find('.', name.rfind('/') + 1) != std::string::npos;  // npos + 1 is 0
    throw Error(ErrorCode::bad_file, Place{path, {}, {}},
                has_extension ? fmt::format("there is no such picture, and {} names it", told_by)
                              : fmt::format("there is no such picture (.png, .jpg, .jpeg), and {} names it", told_by));
}

std::array<double, 3> origin_of(const std::vector<PlannedView>& views) {
    std::array<double, 3> origin = {};
    for (size_t axis = 0; axis < 3; ++axis) {
        double low = INFINITY, high = -INFINITY;
        for (const PlannedView& view : views) {
            low = std::min(low, view.frame.to_world[4 * axis + 3]);
            high = std::max(high, view.frame.to_world[4 * axis + 3]);
        }
        if (std::max(-low, high) > kLargePosition) origin[axis] = std::round(0.5 * low + 0.5 * high);
    }
    return origin;
}

void split_views(std::vector<PlannedView> all, int test_every, std::vector<PlannedView>& train,
                 std::vector<PlannedView>& test) {
    STIPPLE_REQUIRE(test_every >= 0, "every n-th image is a test image: {} is no such n", test_every);
    std::sort(all.begin(), all.end(),
              [](const PlannedView& a, const PlannedView& b) { return a.frame.file_path < b.frame.file_path; });
    const bool splits = test_every > 0 && all.size() > 1;
    for (size_t i = 0; i < all.size(); ++i) {
        // Of images that are all to be tested the last one is kept to learn from.
        const bool tests =
            splits && i % static_cast<size_t>(test_every) == 0 && !(test_every == 1 && i + 1 == all.size());
        (tests ? test : train).push_back(std::move(all[i]));
    }
}

}  // namespace stipple::radiance
