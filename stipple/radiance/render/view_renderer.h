#pragma once
// What a Renderer holds: one implementation for each kind of device.

#include "stipple/radiance/render.h"

namespace stipple::radiance {

class ViewRenderer {
public:
    virtual ~ViewRenderer() = default;
    virtual RenderedView render(const Camera& camera, const RenderOptions& options) = 0;
    virtual double seconds() const = 0;  // of the device for the last view
};

std::unique_ptr<ViewRenderer> make_cpu_renderer(const Field& field);
namespace cuda {
void make_renderer(const Field& field, Device device, std::unique_ptr<ViewRenderer>& to);
}

}  // namespace stipple::radiance
