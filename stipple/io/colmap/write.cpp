#include "stipple/io/colmap/camera_models.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

/// Bytes or text gathered and handed on in pieces.
class Pieces {
public:
    explicit Pieces(ByteSink& sink) : sink_(sink) {}

    template <class T>
    void number(T value) {
        text_.append(reinterpret_cast<const char*>(&value), sizeof value);  // hosts are little-endian
    }
    std::string& text() { return text_; }
    /// Between two items.
    void pass() {
        if (text_.size() > size_t{1} << 16) finish();
    }
    void finish() {
        sink_.write(text_);
        text_.clear();
    }

private:
    ByteSink& sink_;
    std::string text_;
};

void append_numbers(std::string& text, std::span<const double> numbers) {
    for (const double number : numbers) append_number(text += ' ', number);
}

void require_names(const ColmapModel& model) {
    for (const ColmapImage& image : model.images)
        STIPPLE_REQUIRE(
            !image.name.empty() && image.name.find_first_of(std::string_view("\n\r\0", 3)) == std::string::npos,
            "image {} has a name that COLMAP cannot hold", image.id);
}

using WriteColmapPart = void (*)(const ColmapModel&, ColmapForm, ByteSink&);

void write_part(const std::string& path, const ColmapModel& model, ColmapForm form, Overwrite overwrite,
                WriteColmapPart write) {
    AtomicFile file(path, overwrite);
    write(model, form, file);
    file.commit();
}

void write_all_parts(const std::string& folder, const ColmapModel& model, ColmapForm form, Overwrite overwrite) {
    const char* extension = form == ColmapForm::text ? "txt" : "bin";
    require_names(model);
    write_part(fmt::format("{}/cameras.{}", folder, extension), model, form, overwrite, write_colmap_cameras);
    write_part(fmt::format("{}/images.{}", folder, extension), model, form, overwrite, write_colmap_images);
    write_part(fmt::format("{}/points3D.{}", folder, extension), model, form, overwrite, write_colmap_points);
}

}  // namespace

void write_colmap_cameras(const ColmapModel& model, ColmapForm form, ByteSink& sink) {
    Pieces out(sink);
    if (form == ColmapForm::text)
        out.text() += "# CAMERA_ID, MODEL, WIDTH, HEIGHT, PARAMS[]\n";
    else
        out.number(static_cast<uint64_t>(model.cameras.size()));
    for (const ColmapCamera& camera : model.cameras) {
        const colmap::ModelInfo& info = colmap::info_of(camera.model);
        const std::vector<double> parameters = colmap::parameters_of(camera);
        if (form == ColmapForm::text) {
            out.text() += fmt::format("{} {} {} {}", camera.id, info.name, camera.lens.width, camera.lens.height);
            append_numbers(out.text(), parameters);
            out.text() += '\n';
        } else {
            out.number(camera.id);
            out.number(static_cast<int32_t>(info.id));
            out.number(static_cast<uint64_t>(camera.lens.width));
            out.number(static_cast<uint64_t>(camera.lens.height));
            for (const double number : parameters) out.number(number);
        }
        out.pass();
    }
    out.finish();
}

void write_colmap_images(const ColmapModel& model, ColmapForm form, ByteSink& sink) {
    Pieces out(sink);
    if (form == ColmapForm::text)
        out.text() += "# IMAGE_ID, QW, QX, QY, QZ, TX, TY, TZ, CAMERA_ID, NAME\n# POINTS2D[] as (X, Y, POINT3D_ID)\n";
    else
        out.number(static_cast<uint64_t>(model.images.size()));
    for (const ColmapImage& image : model.images) {
        if (form == ColmapForm::text) {
            out.text() += fmt::format("{}", image.id);
            append_numbers(out.text(), image.rotation);
            append_numbers(out.text(), image.translation);
            out.text() += fmt::format(" {} {}\n\n", image.camera_id, image.name);
        } else {
            out.number(image.id);
            for (const double number : image.rotation) out.number(number);
            for (const double number : image.translation) out.number(number);
            out.number(image.camera_id);
            out.text() += image.name;
            out.number('\0');
            out.number(uint64_t{0});
        }
        out.pass();
    }
    out.finish();
}

void write_colmap_points(const ColmapModel& model, ColmapForm form, ByteSink& sink) {
    Pieces out(sink);
    if (form == ColmapForm::text)
        out.text() += "# POINT3D_ID, X, Y, Z, R, G, B, ERROR, TRACK[] as (IMAGE_ID, POINT2D_IDX)\n";
    else
        out.number(static_cast<uint64_t>(model.points.size()));
    for (size_t i = 0; i < model.points.size(); ++i) {
        const ColmapPoint& point = model.points[i];
        const std::span<const uint32_t> track = model.track_of(i);
        if (form == ColmapForm::text) {
            out.text() += fmt::format("{}", point.id);
            append_numbers(out.text(), point.position);
            out.text() += fmt::format(" {} {} {}", point.color[0], point.color[1], point.color[2]);
            append_numbers(out.text(), {&point.error, 1});
            for (const uint32_t image : track) out.text() += fmt::format(" {} 0", image);
            out.text() += '\n';
        } else {
            out.number(point.id);
            for (const double number : point.position) out.number(number);
            for (const uint8_t number : point.color) out.number(number);
            out.number(point.error);
            out.number(static_cast<uint64_t>(track.size()));
            for (const uint32_t image : track) {
                out.number(image);
                out.number(uint32_t{0});
            }
        }
        out.pass();
    }
    out.finish();
}

void write_colmap_text(const std::string& folder, const ColmapModel& model, Overwrite overwrite) {
    write_all_parts(folder, model, ColmapForm::text, overwrite);
}

void write_colmap_binary(const std::string& folder, const ColmapModel& model, Overwrite overwrite) {
    write_all_parts(folder, model, ColmapForm::binary, overwrite);
}

}  // namespace stipple::io
