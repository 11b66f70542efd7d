#pragma once
// Pictures of a field.

#include <memory>

#include "stipple/radiance/field.h"

namespace stipple::radiance {

/// Of one camera, on the CPU. Colour is composited on the field's background (random: black, learned: by the pixel's
/// direction), not clipped or rounded.
struct RenderedView {
    Array<float, 3> colour;  // [height, width, 3]
    Array<float, 3> alpha;   // [height, width, 1]
    Array<float, 3> depth;  // [height, width, 1] metric distance along the camera's axis where opacity passes one half;
                            // infinity where it does not
    Array<float, 3> normal;  // [height, width, 3] unit, towards lower density, by weight; 0 where there is none
};

struct RenderOptions {
    bool geometry = false;  // depth and normal too; both are empty otherwise
    bool colour = true;     // false: colours are not needed, which saves most of the time; they may be empty
};

/// A field made ready for rendering on one device: grids are unpacked once. Views of one renderer are rendered one at a
/// time. On CUDA rays march with the same rules and differ by the rounding of the colour network's half precision.
class Renderer {
public:
    Renderer(const Field& field, Device device);
    ~Renderer();
    Renderer(Renderer&&) noexcept;
    Renderer& operator=(Renderer&&) noexcept;

    RenderedView render(const Camera& camera, const RenderOptions& options = {});

    /// Seconds that the device took for the last view, without copies to and from it.
    double seconds() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace stipple::radiance
