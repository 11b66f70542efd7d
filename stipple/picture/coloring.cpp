#include "stipple/picture/coloring.h"

#include <algorithm>

#include "stipple/picture/render/sample.h"

namespace stipple::picture {
namespace {

constexpr int64_t kMaxSample = 50'000;

bool names_category(const std::string& name) {
    return name == "label" || name == "class" || name == "classification" || name == "part";
}

std::string names_of(const PointCloud& cloud, const Mesh* mesh) {
    std::string names = "x, y, z, depth, constant";
    for (const Attribute& a : cloud.attributes) names += ", " + a.name();
    if (mesh)
        for (const Attribute& a : mesh->face_attributes) names += ", " + a.name();
    return names;
}

/// Numbers that are not all the same.
bool has_values(const Attribute* attribute) {
    if (!attribute || attribute->components() != 1 || attribute->rows() == 0) return false;
    bool differs = false;
    const double first = attribute->value(0);
    for_sample(attribute->rows(), kMaxSample, [&](int64_t i) { differs |= attribute->value(i) != first; });
    return differs;
}

}  // namespace

std::string automatic_color(const PointCloud& cloud, UpAxis up) {
    if (find(cloud.attributes, "color")) return "color";
    if (has_values(find(cloud.attributes, "intensity"))) return "intensity";
    return std::string(1, "xyz"[axis_of(up)]);
}

Coloring::Coloring(const PointCloud& cloud, const Mesh* mesh, const std::string& given, Rgb constant, UpAxis up)
    : cloud_(&cloud), mesh_(mesh), constant_(constant) {
    const std::string by = given.empty() && !mesh ? automatic_color(cloud, up) : given;
    if (by == "constant") return;
    if (!by.empty() && by[0] == '#') {
        constant_ = parse_color(by);
        return;
    }
    attribute_ = find(cloud.attributes, by.empty() ? "color" : by);
    if (!attribute_ && mesh) {
        attribute_ = find(mesh->face_attributes, by.empty() ? "color" : by);
        per_face_ = attribute_ != nullptr;
    }
    if (!attribute_) {
        if (by.empty()) return;
        if (by == "depth") {
            kind_ = ColorKind::depth;
        } else if (by == "x" || by == "y" || by == "z") {
            kind_ = ColorKind::axis;
            axis_ = by[0] - 'x';
        } else {
            throw Error(ErrorCode::bad_argument, fmt::format("no attribute '{}' to colour by", by),
                        "one of: " + names_of(cloud, mesh));
        }
        return;
    }
    const int64_t rows = per_face_ ? mesh->faces() : cloud.size();
    STIPPLE_REQUIRE(attribute_->rows() == rows, "attribute '{}' has {} rows for {} items", attribute_->name(),
                    attribute_->rows(), rows);
    const DType dtype = attribute_->dtype();
    if (attribute_->components() >= 3 && (dtype == DType::u8 || dtype == DType::u16)) {
        kind_ = ColorKind::rgb;
        const double maximum = color_maximum(*attribute_);
        rgb_scale_ = maximum == 255 ? 1.f : 255.f / 65535.f;
    } else if (attribute_->components() >= 3 && attribute_->name() == "color") {
        kind_ = ColorKind::rgb;  // floats in [0, 1]
        rgb_scale_ = 255.f;
    } else if (attribute_->components() == 3 && attribute_->name() == "normal") {
        kind_ = ColorKind::normal;
    } else if (is_integer(dtype) && attribute_->components() == 1 && names_category(attribute_->name())) {
        kind_ = ColorKind::category;
    } else {
        kind_ = ColorKind::scalar;
    }
}

double Coloring::value(int64_t row) const {
    if (kind_ == ColorKind::axis) return cloud_->world(row, axis_);
    if (attribute_->components() == 1) return attribute_->value(row);
    double sum = 0;
    for (int64_t c = 0; c < attribute_->components(); ++c) sum += attribute_->value(row, c) * attribute_->value(row, c);
    return std::sqrt(sum);
}

void Coloring::sample_values(std::vector<double>& values) const {
    const int64_t rows = per_face_ ? mesh_->faces() : cloud_->size();
    for_sample(rows, kMaxSample, [&](int64_t i) {
        const double v = value(i);
        if (std::isfinite(v)) values.push_back(v);
    });
}

void Coloring::collect_labels(std::vector<int64_t>& labels, size_t limit) const {
    int64_t last = labels.empty() ? 0 : labels.back();
    bool have_last = !labels.empty();
    for (int64_t i = 0; i < attribute_->rows() && labels.size() < limit; ++i) {
        const auto label = static_cast<int64_t>(attribute_->value(i));
        if (have_last && label == last) continue;
        have_last = true;
        last = label;
        const auto at = std::lower_bound(labels.begin(), labels.end(), label);
        if (at == labels.end() || *at != label) labels.insert(at, label);
    }
}

Vec3f Coloring::rgb(int64_t row) const {
    return Vec3f{static_cast<float>(attribute_->value(row, 0)), static_cast<float>(attribute_->value(row, 1)),
                 static_cast<float>(attribute_->value(row, 2))} *
           rgb_scale_;
}

Vec3f Coloring::category(int64_t row, const ColorScale& scale) const {
    const auto label = static_cast<int64_t>(attribute_->value(row));
    const auto at = std::lower_bound(scale.labels.begin(), scale.labels.end(), label);
    if (at == scale.labels.end() || *at != label) return to_vec(scale.missing);
    return to_vec(category_color(at - scale.labels.begin()));
}

Vec3f Coloring::scalar(double v, const ColorScale& scale) const {
    if (!std::isfinite(v)) return to_vec(scale.missing);
    return to_vec(map_color(scale.map, (v - scale.low) / (scale.high - scale.low)));
}

Vec3f Coloring::of_point(int64_t point, float depth01, const ColorScale& scale) const {
    switch (kind_) {
        case ColorKind::constant: return to_vec(constant_);
        case ColorKind::rgb: return rgb(point);
        case ColorKind::scalar:
        case ColorKind::axis: return scalar(value(point), scale);
        case ColorKind::depth: return to_vec(map_color(scale.map, depth01));
        case ColorKind::category: return category(point, scale);
        case ColorKind::normal: {
            const Vec3f n{static_cast<float>(attribute_->value(point, 0)),
                          static_cast<float>(attribute_->value(point, 1)),
                          static_cast<float>(attribute_->value(point, 2))};
            return (normalized(n) + Vec3f{1, 1, 1}) * 127.5f;
        }
    }
    return to_vec(constant_);
}

Vec3f Coloring::of_face(int64_t face, const float weight[3], float depth01, const ColorScale& scale) const {
    if (per_face_) return of_point(face, depth01, scale);
    if (kind_ == ColorKind::constant || kind_ == ColorKind::depth) return of_point(0, depth01, scale);
    const int32_t* corner = mesh_->triangles.data() + 3 * face;
    if (kind_ == ColorKind::category) {  // labels do not mix: the nearest corner's
        const int best = weight[0] >= weight[1] ? (weight[0] >= weight[2] ? 0 : 2) : (weight[1] >= weight[2] ? 1 : 2);
        return category(corner[best], scale);
    }
    if (needs_range()) {  // values mix, not their colours
        double sum = 0;
        for (int k = 0; k < 3; ++k) sum += static_cast<double>(weight[k]) * value(corner[k]);
        return scalar(sum, scale);
    }
    Vec3f sum;
    for (int k = 0; k < 3; ++k) sum = sum + of_point(corner[k], depth01, scale) * weight[k];
    return sum;
}

void choose_range(std::vector<double>& values, double& low, double& high) {
    low = 0;
    high = 1;
    if (values.empty()) return;
    const auto quantile = [&](double q) {
        const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
        std::nth_element(values.begin(), at, values.end());
        return *at;
    };
    low = quantile(0.02);
    high = quantile(0.98);
    if (!(high > low)) {
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        low = *least;
        high = *most;
    }
    if (!(high > low) || !std::isfinite(high - low)) {
        low = std::isfinite(high - low) ? low - 0.5 : -1e308 / 2;
        high = low < -1e307 ? 1e308 / 2 : low + 1;
        if (!(high > low)) high = std::nextafter(low, 1e308);  // huge values swallow the 1
    }
}

}  // namespace stipple::picture
