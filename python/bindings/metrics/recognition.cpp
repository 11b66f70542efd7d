// stipple.metrics: classes, parts, registration, reconstruction and images.

#include <cstring>

#include "python/bindings/metrics/common.h"
#include "python/bindings/metrics/confusion.h"
#include "stipple/metrics/image_quality.h"
#include "stipple/metrics/reconstruction.h"
#include "stipple/metrics/registration.h"
#include "stipple/metrics/segmentation.h"

namespace stipple::python {
namespace {

struct PartIouRecord {
    static constexpr auto name = py::detail::const_name("PartIou");
    static constexpr const char* fields[] = {"instance", "category", "categories", "shapes", "shape_count", "accuracy"};
};

std::span<const int32_t> labels(Call& call, const py::object& object, const char* name) {
    const auto view = call.array<int32_t, 1>(object, name);
    STIPPLE_REQUIRE(view.device() == Device{}, "{}: on {}; labels are read on the CPU", name, view.device());
    return {view.data(), static_cast<size_t>(view.elements())};
}

ConfusionObject confusion(const ArrayLike& predictions_, const ArrayLike& truth_, const py::object& classes_) {
    Call call;
    const auto predictions = labels(call, predictions_, "predictions"), truth = labels(call, truth_, "truth");
    std::vector<std::string> classes = texts_of(classes_, "classes");
    return {without_gil([&] {
        return std::make_shared<metrics::Confusion>(metrics::confusion(predictions, truth, std::move(classes)));
    })};
}

metrics::PartCategory category_of(const py::object& category) {
    metrics::PartCategory made{text_of(sequence_part(category, "category", 2, 0), "category[0], name"), {}};
    for (int64_t part : whole_numbers(sequence_part(category, "category", 2, 1), "category[1], parts")) {
        STIPPLE_REQUIRE(part >= INT32_MIN && part <= INT32_MAX, "category[1], parts: {}", part);
        made.parts.push_back(static_cast<int32_t>(part));
    }
    return made;
}

Record<PartIouRecord> part_iou(const py::object& shapes_, const py::object& categories_, std::string_view absent_) {
    using metrics::AbsentPart;
    constexpr Word<AbsentPart> kAbsent[] = {{"counts_one", AbsentPart::counts_one}, {"left_out", AbsentPart::left_out}};
    const AbsentPart absent = choice(absent_, "absent", kAbsent);
    std::vector<metrics::PartCategory> categories;
    for (py::handle each : categories_) categories.push_back(category_of(py::reinterpret_borrow<py::object>(each)));
    Call call;
    std::vector<metrics::SegmentedShape> shapes;
    for (py::handle each : shapes_) {
        const auto shape = py::reinterpret_borrow<py::object>(each);
        const auto category = sequence_part(shape, "shapes", 3, 0).cast<int32_t>();
        shapes.push_back({category, labels(call, sequence_part(shape, "shapes", 3, 1), "predictions"),
                          labels(call, sequence_part(shape, "shapes", 3, 2), "truth")});
    }
    metrics::PartIou found;
    call.run([&](Stream) { found = metrics::part_iou(shapes, categories, absent); });
    return record<PartIouRecord>(py::float_(found.instance), py::float_(found.category),
                                 numpy_of(std::move(found.categories)), numpy_of(std::move(found.shapes)),
                                 numpy_of(std::move(found.shape_count)), py::float_(found.accuracy));
}

ArrayResult best_parts(const ArrayLike& scores_, const py::object& category_) {
    const metrics::PartCategory category = category_of(category_);
    Call call;
    const auto scores = call.array<float, 2>(scores_, "scores");
    std::vector<int32_t> found;
    call.run([&](Stream) { found = metrics::best_parts(scores, category); });
    return numpy_of(std::move(found));
}

metrics::Motion motion_of(Call& call, const py::object& object, const char* name) {
    const auto view = call.array<double, 2>(object, name);
    STIPPLE_REQUIRE(view.size(0) == 4 && view.size(1) == 4, "{}: an array of shape [{}, {}]; wanted is [4, 4]", name,
                    view.size(0), view.size(1));
    STIPPLE_REQUIRE(view.device() == Device{}, "{}: on {}; motions are read on the CPU", name, view.device());
    metrics::Motion motion;
    std::memcpy(motion.data(), view.data(), sizeof(motion));
    return motion;
}

template <double (*Measure)(const metrics::Motion&, const metrics::Motion&)>
double motion_error(const ArrayLike& estimate, const ArrayLike& truth) {
    Call call;
    const metrics::Motion a = motion_of(call, estimate, "estimate"), b = motion_of(call, truth, "truth");
    return Measure(a, b);
}

double point_rmse(const ArrayLike& points_, const ArrayLike& estimate, const ArrayLike& truth) {
    Call call;
    const auto points = call.clouds(points_, "points", py::none(), 3);
    STIPPLE_REQUIRE(points.form.is_single(), "points: a batch; wanted is one cloud, [n, 3]");
    const metrics::Motion a = motion_of(call, estimate, "estimate"), b = motion_of(call, truth, "truth");
    double found = 0;
    call.run([&](Stream) { found = metrics::point_rmse(points.clouds.rows, a, b); });
    return found;
}

Image image_of(const ArrayInfo& info) {
    Image image(info.shape[1], info.shape[0], info.shape[2]);
    copy_bytes(image.pixels.data(), Device{}, info.data, info.device, info.elements());
    return image;
}

template <class Measure>
double image_measure(const py::object& a_, const py::object& b_, const py::object& range, Measure&& measure) {
    Call call;
    const ArrayInfo a = call.any(a_, "a");
    if (a.dtype == DType::u8) {
        const ArrayInfo b = call.any(b_, "b");
        if (b.dtype != DType::u8) throw py::type_error("b: wanted is uint8, as a is");
        STIPPLE_REQUIRE(a.rank == 3 && b.rank == 3, "a, b: shapes {} and {}; wanted is [height, width, channels]",
                        shape_of(a), shape_of(b));
        STIPPLE_REQUIRE(range.is_none(), "range: is 255 for images of uint8");
        return without_gil([&] { return measure(image_of(a), image_of(b)); });
    }
    Call floats;
    const auto x = floats.array<float, 3>(a_, "a"), y = floats.array<float, 3>(b_, "b");
    const double width = range.is_none() ? 1 : range.cast<double>();
    return without_gil([&] { return measure(x, y, width); });
}

double psnr(const ArrayLike& a, const ArrayLike& b, const py::object& range) {
    return image_measure(a, b, range, [](const auto&... given) { return metrics::psnr(given...); });
}

double ssim(const ArrayLike& a, const ArrayLike& b, const py::object& range) {
    return image_measure(a, b, range, [](const auto&... given) { return metrics::ssim(given...); });
}

void bind_recognition_classes(py::module_& module) {
    py::class_<ConfusionObject>(module, "Confusion", doc::metrics::confusion)
        .def_property_readonly("classes", [](const ConfusionObject& o) { return tuple_of(o.confusion->classes); })
        .def_property_readonly(
            "counts",
            [](const ConfusionObject& o) { return view_numpy(std::as_const(o.confusion->counts).view(), o.confusion); },
            "[truth, prediction]")
        .def(
            "total", [](const ConfusionObject& o) { return o.confusion->total(); }, "All answers.")
        .def("__str__", [](const ConfusionObject& o) { return metrics::to_text(*o.confusion); });
    module.def("confusion", &confusion, py::arg("predictions"), py::arg("truth"), py::arg("classes"),
               doc::metrics::confusion);
    module.def(
        "overall_accuracy", [](const ConfusionObject& o) { return metrics::overall_accuracy(*o.confusion); },
        py::arg("confusion"), doc::metrics::overall_accuracy);
    module.def(
        "class_accuracies", [](const ConfusionObject& o) { return numpy_of(metrics::class_accuracies(*o.confusion)); },
        py::arg("confusion"), doc::metrics::class_accuracies);
    module.def(
        "mean_accuracy", [](const ConfusionObject& o) { return metrics::mean_accuracy(*o.confusion); },
        py::arg("confusion"), doc::metrics::mean_accuracy);
    module.def(
        "to_text", [](const ConfusionObject& o) { return metrics::to_text(*o.confusion); }, py::arg("confusion"),
        doc::metrics::to_text);
}

void bind_motions(py::module_& module) {
    module.def("rotation_error", &motion_error<metrics::rotation_error>, py::arg("estimate"), py::arg("truth"),
               doc::metrics::rotation_error);
    module.def("rotation_error_doubled", &motion_error<metrics::rotation_error_doubled>, py::arg("estimate"),
               py::arg("truth"), doc::metrics::rotation_error_doubled);
    module.def("translation_error", &motion_error<metrics::translation_error>, py::arg("estimate"), py::arg("truth"),
               doc::metrics::translation_error);
    module.def("point_rmse", &point_rmse, py::arg("points"), py::arg("estimate"), py::arg("truth"),
               doc::metrics::point_rmse);
    module.def(
        "precision_auc",
        [](const py::object& errors, double most, double step) {
            return metrics::precision_auc(numbers_of(errors, "errors"), most, step);
        },
        py::arg("errors"), py::arg("most") = 180.0, py::arg("step") = 0.5, doc::metrics::precision_auc);
    module.def(
        "success_rate",
        [](const py::object& rotations, const py::object& translations, double most_rotation, double most_translation) {
            return metrics::success_rate(numbers_of(rotations, "rotations"), numbers_of(translations, "translations"),
                                         most_rotation, most_translation);
        },
        py::arg("rotations"), py::arg("translations"), py::arg("most_rotation"), py::arg("most_translation"),
        doc::metrics::success_rate);
}

}  // namespace

void bind_metrics_recognition(py::module_& module) {
    add_record<PartIouRecord>(module);
    bind_recognition_classes(module);
    bind_motions(module);
    module.def("part_iou", &part_iou, py::arg("shapes"), py::arg("categories"), py::kw_only(),
               py::arg("absent") = "counts_one", doc::metrics::part_iou);
    module.def("best_parts", &best_parts, py::arg("scores"), py::arg("category"), doc::metrics::best_parts);
    module.def(
        "normalised_reconstruction_error",
        [](const py::object& of_samples, const py::object& of_wholes) {
            return metrics::normalised_reconstruction_error(numbers_of(of_samples, "of_samples"),
                                                            numbers_of(of_wholes, "of_wholes"));
        },
        py::arg("of_samples"), py::arg("of_wholes"), doc::metrics::normalised_reconstruction_error);
    module.def("psnr", &psnr, py::arg("a"), py::arg("b"), py::arg("range") = py::none(), doc::metrics::psnr);
    module.def("ssim", &ssim, py::arg("a"), py::arg("b"), py::arg("range") = py::none(), doc::metrics::ssim);
}

}  // namespace stipple::python
