// Functions on another stream than the default one. Debian's CUDA headers of torch do not compile: nothing is here
// without CUDA.

#ifdef STIPPLE_WITH_CUDA

#include <gtest/gtest.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "stipple/learn/functions.h"
#include "stipple/learn/stream.h"
#include "tests/learn/gradients.h"

namespace stipple::learn {
namespace {

TEST(LearnStream, WorkIsQueuedBehindTheCallersOwn) {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
    const ops::Batch batch = ops::Batch::dense(8, 512);
    const torch::Tensor start = test::normal_tensor({8 * 512, 3}, 1).to(torch::kCUDA),
                        other = test::normal_tensor({8 * 512, 3}, 2).to(torch::kCUDA);
    const torch::Tensor large = torch::eye(4096, start.options());
    const auto gradient = [&] {
        torch::Tensor product = large;  // a few milliseconds that the points have to wait for
        for (int i = 0; i < 20; ++i) product = torch::mm(product, large);
        const torch::Tensor points = (start * product[0][0]).detach().set_requires_grad(true);
        const ChamferMeans means = chamfer({points, batch}, {other, batch}, ops::DistanceNorm::squared);
        const torch::Tensor nearest = knn({points, batch}, {points, batch}, 4).distances_sq;
        (means.a_to_b.sum() + means.b_to_a.sum() + nearest.sum()).backward();
        return points.grad();
    };
    const torch::Tensor expected = gradient();
    torch::cuda::synchronize();
    const c10::cuda::CUDAStream side = c10::cuda::getStreamFromPool();
    for (int repeat = 0; repeat < 3; ++repeat) {
        const c10::cuda::CUDAStreamGuard guard(side);
        EXPECT_EQ(current_stream(start).handle, static_cast<void*>(side.stream()));
        EXPECT_NE(current_stream(start).handle, nullptr);
        const torch::Tensor found = gradient();
        side.synchronize();
        EXPECT_TRUE(torch::equal(found, expected));
    }
}

}  // namespace
}  // namespace stipple::learn

#endif
