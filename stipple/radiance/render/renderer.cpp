#include "stipple/core/error.h"
#include "stipple/radiance/render/view_renderer.h"

namespace stipple::radiance {

struct Renderer::State {
    std::unique_ptr<ViewRenderer> renderer;
};

Renderer::Renderer(const Field& field, Device device) : state_(std::make_unique<State>()) {
    const std::string fault = fault_of(field);
    STIPPLE_REQUIRE(fault.empty(), "render: {}", fault);
    switch (device.type) {
        case DeviceType::cpu: state_->renderer = make_cpu_renderer(field); break;
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::make_renderer, field, device, state_->renderer); break;
    }
}
Renderer::~Renderer() = default;
Renderer::Renderer(Renderer&&) noexcept = default;
Renderer& Renderer::operator=(Renderer&&) noexcept = default;

RenderedView Renderer::render(const Camera& camera, const RenderOptions& options) {
    STIPPLE_REQUIRE(camera.width > 0 && camera.height > 0, "render: a picture of {} x {}", camera.width, camera.height);
    STIPPLE_REQUIRE(camera.fx > 0 && camera.fy > 0, "render: focal lengths {} and {}", camera.fx, camera.fy);
    return state_->renderer->render(camera, options);
}

double Renderer::seconds() const {
    return state_->renderer->seconds();
}

}  // namespace stipple::radiance
