#include "stipple/data/augment.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stipple/data/augmentation/motion.h"

namespace stipple::data {
namespace {

// ---- which rows

void fill_keys(const Rng& rng, AugmentScratch& scratch) {
    scratch.keys.resize(scratch.source.size());
    for (size_t row = 0; row < scratch.source.size(); ++row)
        scratch.keys[row] = {bits_of_point(rng, scratch.source[row]), scratch.source[row]};
}

bool is_before(const AugmentScratch::Key& a, const AugmentScratch::Key& b) {
    return a.bits != b.bits ? a.bits < b.bits : a.index < b.index;
}

void choose_points(const Rng& rng, int64_t count, AugmentScratch& scratch) {
    fill_keys(rng, scratch);
    std::nth_element(scratch.keys.begin(), scratch.keys.begin() + (count - 1), scratch.keys.end(), is_before);
    for (int64_t row = 0; row < count; ++row) scratch.source[row] = scratch.keys[row].index;
    scratch.source.resize(static_cast<size_t>(count));
    std::sort(scratch.source.begin(), scratch.source.end());
}

void shuffle_points(const Rng& rng, AugmentScratch& scratch) {
    fill_keys(rng, scratch);
    std::sort(scratch.keys.begin(), scratch.keys.end(), is_before);
    for (size_t row = 0; row < scratch.source.size(); ++row) scratch.source[row] = scratch.keys[row].index;
}

/// Of rows of which the first `kept` stay.
void keep_first(size_t kept, DropoutForm form, std::vector<int32_t>& source) {
    switch (form) {
        case DropoutForm::remove: source.resize(kept); break;
        case DropoutForm::replace:
            std::fill(source.begin() + static_cast<int64_t>(kept), source.end(), source[0]);
            break;
        case DropoutForm::repeat:
            for (size_t row = kept; row < source.size(); ++row) source[row] = source[row - kept];
            break;
    }
}

/// Returns whether a row changed.
bool drop_points(const Rng& rng, const AugmentOptions& options, AugmentScratch& scratch) {
    std::vector<int32_t>& source = scratch.source;
    const double ratio = dropout_ratio_of(options, rng);
    if (source.empty() || ratio < 0) return false;
    scratch.dropped.resize(source.size());
    size_t first = source.size(), count = 0;
    for (size_t row = 0; row < source.size(); ++row) {
        scratch.dropped[row] = is_dropped(rng, source[row], ratio);
        count += scratch.dropped[row];
        if (!scratch.dropped[row] && first == source.size()) first = row;
    }
    if (count == 0) return false;
    if (first == source.size()) first = 0, scratch.dropped[0] = 0;
    if (options.dropout_form == DropoutForm::replace) {  // in their places
        for (size_t row = 0; row < source.size(); ++row)
            if (scratch.dropped[row]) source[row] = source[first];
        return true;
    }
    size_t kept = 0;
    for (size_t row = 0; row < source.size(); ++row)
        if (!scratch.dropped[row]) source[kept++] = source[row];
    keep_first(kept, options.dropout_form, source);
    return true;
}

/// Returns whether a row changed.
bool thin_points(const Rng& rng, const AugmentOptions& options, AugmentScratch& scratch) {
    std::vector<int32_t>& source = scratch.source;
    const auto rows = static_cast<int64_t>(source.size());
    const int64_t n = thinned_rows(options, rng, rows);
    if (n == rows) return false;
    if (!thins_to_first(options, rng)) {
        scratch.keys.resize(source.size());
        for (size_t row = 0; row < source.size(); ++row)
            scratch.keys[row] = {thin_bits_of_point(rng, source[row]), static_cast<int32_t>(row)};
        std::nth_element(scratch.keys.begin(), scratch.keys.begin() + (n - 1), scratch.keys.end(), is_before);
        std::sort(scratch.keys.begin(), scratch.keys.begin() + n,
                  [](const auto& a, const auto& b) { return a.index < b.index; });
        for (int64_t row = 0; row < n; ++row) source[row] = source[scratch.keys[row].index];
    }
    keep_first(static_cast<size_t>(n), options.dropout_form, source);
    return true;
}

/// Row i becomes what row source[i] was.
void gather_rows(View<float, 2> rows, AugmentScratch& scratch) {
    const int64_t m = static_cast<int64_t>(scratch.source.size());
    scratch.rows.resize(static_cast<size_t>(3 * m));
    for (int64_t i = 0; i < m; ++i)
        std::copy_n(rows.data() + scratch.source[i] * rows.stride(0), 3, scratch.rows.data() + 3 * i);
    for (int64_t i = 0; i < m; ++i) std::copy_n(scratch.rows.data() + 3 * i, 3, rows.data() + i * rows.stride(0));
}

void gather_labels(View<int32_t, 1> labels, AugmentScratch& scratch) {
    scratch.labels.resize(scratch.source.size());
    for (size_t i = 0; i < scratch.labels.size(); ++i) scratch.labels[i] = labels(scratch.source[i]);
    for (size_t i = 0; i < scratch.labels.size(); ++i) labels(i) = scratch.labels[i];
}

// ---- where they go

Vec3d moved_normal(const Motion& motion, Vec3d v) {
    v = motion.turned(v);
    if (!motion.scales_axes) return v;
    const Vec3d scaled = {v.x / motion.scale.x, v.y / motion.scale.y, v.z / motion.scale.z};
    const double l = length(scaled);
    return l > 0 ? (length(v) / l) * scaled : v;
}

void move_rows(const AugmentCloud& cloud, const Motion& motion, const MotionOptions& options, const Rng& jitter,
               const std::vector<int32_t>& source) {
    const bool moves_normals = cloud.normals.size(0) > 0 && motion.moves_normals();
    for (size_t i = 0; i < source.size(); ++i) {
        float* p = cloud.points.data() + static_cast<int64_t>(i) * cloud.points.stride(0);
        if (!is_finite_point(p)) continue;
        move_point(motion, options, jitter, source[i], p);
        if (!moves_normals) continue;
        float* normal = cloud.normals.data() + static_cast<int64_t>(i) * cloud.normals.stride(0);
        store(moved_normal(motion, to_vec3(normal)), normal);
    }
}

// ---- what is refused

void require_order(const char* names, double min, double max) {
    STIPPLE_REQUIRE(min <= max, "augment: {} must ascend, got {} to {}", names, min, max);
}

void require_rows(const char* name, View<float, 2> rows, int64_t n) {
    STIPPLE_REQUIRE(rows.size(0) == n && rows.size(1) == 3 && (n == 0 || rows.stride(1) == 1),
                    "augment: {} must be [{}, 3] with adjacent numbers, got {}", name, n,
                    shape_text(rows.shape().data(), 2));
    STIPPLE_REQUIRE(rows.device() == Device{}, "augment: {} must be in host memory", name);
}

}  // namespace

MotionOptions motion_options(const AugmentOptions& options) {
    MotionOptions how;
    std::copy(options.mirror.begin(), options.mirror.end(), how.mirror);
    how.rotation_angle = options.rotation_angle;
    const Vec3d axis = to_vec3(options.rotation_axis);
    how.rotation_axis = unit((1 / std::max({std::abs(axis.x), std::abs(axis.y), std::abs(axis.z)})) * axis);
    how.tilt_sigma = options.tilt_sigma, how.tilt_clip = options.tilt_clip;
    how.scale_min = options.scale_min, how.scale_max = options.scale_max;
    how.axis_scale_min = options.axis_scale_min, how.axis_scale_max = options.axis_scale_max;
    how.shift = to_vec3(options.shift);
    how.jitter_sigma = options.jitter_sigma, how.jitter_clip = options.jitter_clip;
    return how;
}

const Fields& augment_fields() {
    using Options = AugmentOptions;
    static const Fields fields = {
        field<&Options::choose>("choose", "How many of the stored points are kept; 0: all").from(0),
        field<&Options::shuffle>("shuffle", "Points are put into a random order"),
        field<&Options::dropout_ratio>("dropout_ratio", "The largest share of its points that a cloud loses")
            .between(0, 1),
        field<&Options::dropout_share>("dropout_share", "The share of clouds that lose points").between(0, 1),
        field<&Options::dropout_form>("dropout_form", "What becomes of the rows of points that are lost")
            .words(kDropoutFormWords),
        field<&Options::thin_share>("thin_share", "The share of clouds that are thinned").between(0, 1),
        field<&Options::thin_min>("thin_min", "The fewest points of a thinned cloud").from(1),
        field<&Options::thin_max>("thin_max", "The most points of a thinned cloud; 0: all").from(0),
        field<&Options::thin_first>("thin_first", "How often the first points are those that stay").between(0, 1),
        field<&Options::mirror>("mirror", "Axes that are mirrored in half of the clouds"),
        field<&Options::rotation_angle>("rotation_angle", "The largest turn about the axis, to both sides")
            .unit("radians")
            .between(0, kHalfTurn),
        field<&Options::rotation_axis>("rotation_axis", "What clouds are turned about"),
        field<&Options::tilt_sigma>("tilt_sigma", "Standard deviation of small turns about x, y and z")
            .unit("radians")
            .from(0),
        field<&Options::tilt_clip>("tilt_clip", "The largest of the small turns")
            .unit("radians")
            .from(0)
            .may_be_infinite(),
        field<&Options::scale_min>("scale_min", "The least factor of all coordinates").above(0),
        field<&Options::scale_max>("scale_max", "The largest factor of all coordinates").above(0),
        field<&Options::axis_scale_min>("axis_scale_min", "The least factor of the coordinates of an axis").above(0),
        field<&Options::axis_scale_max>("axis_scale_max", "The largest factor of the coordinates of an axis").above(0),
        field<&Options::shift>("shift", "The farthest that a cloud is moved along x, y and z").from(0),
        field<&Options::jitter_sigma>("jitter_sigma", "Standard deviation of the noise of each coordinate").from(0),
        field<&Options::jitter_clip>("jitter_clip", "The largest noise of a coordinate").from(0).may_be_infinite()};
    return fields;
}

void validate(const AugmentOptions& options) {
    check_fields(augment_fields(), &options, [](const Field& field) { return std::string("augment: ") + field.name; });
    STIPPLE_REQUIRE(options.thin_max == 0 || options.thin_max >= options.thin_min,
                    "augment: thin_max must be 0 (all) or at least thin_min, got {} and {}", options.thin_max,
                    options.thin_min);
    double longest = 0;
    for (double part : options.rotation_axis) longest = std::max(longest, std::abs(part));
    STIPPLE_REQUIRE(longest >= std::numeric_limits<double>::min(), "augment: rotation_axis has no direction");
    require_order("scale_min, scale_max", options.scale_min, options.scale_max);
    require_order("axis_scale_min, axis_scale_max", options.axis_scale_min, options.axis_scale_max);
}

int64_t augment(const AugmentCloud& cloud, const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t item,
                AugmentScratch& scratch) {
    validate(options);
    const int64_t n = cloud.points.size(0);
    require_rows("points", cloud.points, n);
    if (cloud.normals.size(0) > 0) require_rows("normals", cloud.normals, n);
    STIPPLE_REQUIRE(cloud.labels.size(0) == 0 || cloud.labels.size(0) == n, "augment: {} labels for {} points",
                    cloud.labels.size(0), n);
    STIPPLE_REQUIRE(cloud.labels.device() == Device{}, "augment: labels must be in host memory");
    STIPPLE_REQUIRE(n <= std::numeric_limits<int32_t>::max(), "augment: a cloud of {} points", n);
    STIPPLE_REQUIRE(options.choose <= n, "augment: choose {} of {} points", options.choose, n);
    STIPPLE_REQUIRE(epoch >= 0 && item >= 0 && item < int64_t{1} << 59, "augment: epoch {}, item {}", epoch, item);

    const ItemRandom random(seed, epoch, item);
    scratch.source.resize(static_cast<size_t>(n));
    std::iota(scratch.source.begin(), scratch.source.end(), 0);
    bool gathers = false;
    if (options.choose > 0 && options.choose < n) {
        choose_points(random.of(Draws::choose), options.choose, scratch);
        gathers = true;
    }
    if (options.shuffle) {
        shuffle_points(random.of(Draws::shuffle), scratch);
        gathers = true;
    }
    if (options.dropout_ratio > 0 && drop_points(random.of(Draws::dropout), options, scratch)) gathers = true;
    if (options.thin_share > 0 && thin_points(random.of(Draws::thin), options, scratch)) gathers = true;
    if (gathers) {
        gather_rows(cloud.points, scratch);
        if (cloud.normals.size(0) > 0) gather_rows(cloud.normals, scratch);
        if (cloud.labels.size(0) > 0) gather_labels(cloud.labels, scratch);
    }
    const MotionOptions how = motion_options(options);
    const Motion motion = motion_of(how, random);
    if (motion.moves_points()) move_rows(cloud, motion, how, random.of(Draws::jitter), scratch.source);
    return static_cast<int64_t>(scratch.source.size());
}

}  // namespace stipple::data
