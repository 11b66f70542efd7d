#pragma once
// stipple.radiance.Field, Scene and views.

#include <memory>

#include "docstrings.h"
#include "python/bindings/common/cloud_object.h"
#include "python/bindings/common/record.h"
#include "python/bindings/common/small_values.h"
#include "python/bindings/module.h"
#include "stipple/radiance/evaluate.h"

namespace stipple::python {

struct FieldObject {
    std::shared_ptr<const radiance::Field> field;
};
struct SceneObject {
    std::shared_ptr<const radiance::Scene> scene;
};

inline constexpr Word<radiance::Background> kBackgrounds[] = {{"white", radiance::Background::white},
                                                              {"black", radiance::Background::black},
                                                              {"random", radiance::Background::random},
                                                              {"learned", radiance::Background::learned}};

inline const char* word_of(radiance::Background background) {
    for (const auto& each : kBackgrounds)
        if (each.value == background) return each.text;
    return "";
}

inline FieldObject give(radiance::Field&& field) {
    return {std::make_shared<const radiance::Field>(std::move(field))};
}

/// None: the CPU.
inline Device device_or_cpu(const py::object& device) {
    return device.is_none() ? Device{} : device_argument(device);
}

}  // namespace stipple::python
