#pragma once
// picture.Image: pixels that C++ drew or read, which numpy views and a notebook shows.

#include <memory>

#include "python/bindings/common/bind.h"
#include "stipple/core/image.h"

namespace stipple::python {

struct ImageObject {
    std::shared_ptr<Image> image;
};

inline ImageObject give(Image&& image) {
    return {std::make_shared<Image>(std::move(image))};
}

}  // namespace stipple::python
