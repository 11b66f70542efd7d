#include "stipple/ops/matrix_view.h"

namespace stipple::ops {
namespace {

template <class T>
void require_contiguous(const View<T, 2>& view) {
    STIPPLE_REQUIRE(view.is_contiguous(), "a matrix of {} numbers must be contiguous",
                    shape_text(view.shape().data(), 2));
}

}  // namespace

MatrixView::MatrixView(View<const float, 2> view)
    : MatrixView(view.data(), DType::f32, view.size(0), view.size(1), view.device()) {
    require_contiguous(view);
}

MutableMatrixView::MutableMatrixView(View<float, 2> view)
    : MutableMatrixView(view.data(), DType::f32, view.size(0), view.size(1), view.device()) {
    require_contiguous(view);
}

}  // namespace stipple::ops
