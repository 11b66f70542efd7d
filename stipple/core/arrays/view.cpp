#include "stipple/core/view.h"

namespace stipple {

std::string shape_text(const int64_t* shape, int rank) {
    std::string text = "[";
    for (int i = 0; i < rank; ++i) text += fmt::format("{}{}", i ? ", " : "", shape[i]);
    return text + "]";
}

}  // namespace stipple
