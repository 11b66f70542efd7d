// A training step is captured in a CUDA graph: what is in it does no more than launch kernels in stream order.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/half.h"
#include "stipple/core/rng.h"
#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/gram.h"
#include "stipple/ops/row_norm.h"

namespace stipple::test {
namespace {

const Device kGraphDevice{DeviceType::cuda, 0};

struct CapturedStep {
    static constexpr int64_t kRows = 20'000, kColumns = 64;
    Array<uint16_t, 2> rows, gradient, out{{kRows, kColumns}, kGraphDevice};
    Array<float, 2> of_columns{{6, kColumns}, kGraphDevice};
    Array<double, 1> sum{{kColumns}, kGraphDevice};
    Array<double, 2> products{{kColumns, kColumns}, kGraphDevice};

    CapturedStep() : rows(numbers(1)), gradient(numbers(2)) {
        Array<float, 2> host({6, kColumns});
        for (int64_t i = 0; i < host.elements(); ++i) host.data()[i] = 0.5f + 0.01f * static_cast<float>(i % 7);
        of_columns = host.to(kGraphDevice);
    }
    static Array<uint16_t, 2> numbers(uint64_t seed) {
        Array<uint16_t, 2> host({kRows, kColumns});
        const Rng rng(seed);
        for (int64_t i = 0; i < host.elements(); ++i) host.data()[i] = float_to_half(rng.normal(i));
        return host.to(kGraphDevice);
    }
    View<float, 1> column(int64_t i) { return {of_columns.data() + i * kColumns, {kColumns}, kGraphDevice}; }
    void run(Stream stream) {
        const ops::MatrixView x(rows.data(), DType::f16, kRows, kColumns, kGraphDevice);
        const ops::MatrixView g(gradient.data(), DType::f16, kRows, kColumns, kGraphDevice);
        const ops::MutableMatrixView y(out.data(), DType::f16, kRows, kColumns, kGraphDevice);
        const ops::NormColumns columns = {column(0), column(1), column(2), column(3)};
        ops::column_statistics(x, column(0), column(1), stream);
        ops::normalise_rows(x, column(2), column(3), true, y, stream);
        ops::norm_backward_sums(g, x, columns, true, column(4), column(5), stream);
        ops::norm_backward_rows(g, x, columns, column(4), column(5), kRows, true, y, stream);
        if (ops::can_gram_cuda(kColumns)) ops::gram(x, sum.view(), products.view(), stream);
    }
    /// All results; whatever they were is overwritten before the next run.
    std::vector<unsigned char> results() {
        std::vector<unsigned char> all;
        const auto take = [&](auto& array) {
            const auto host = array.to(Device{});
            const size_t bytes = static_cast<size_t>(host.elements()) * sizeof(*host.data()), at = all.size();
            all.resize(at + bytes);
            std::memcpy(all.data() + at, host.data(), bytes);
        };
        take(out), take(of_columns);
        if (ops::can_gram_cuda(kColumns)) take(sum), take(products);
        STIPPLE_CHECK_CUDA(cudaMemset(out.data(), 0, static_cast<size_t>(out.elements()) * 2));
        STIPPLE_CHECK_CUDA(cudaMemset(of_columns.data() + 4 * kColumns, 0, 2 * kColumns * sizeof(float)));
        STIPPLE_CHECK_CUDA(cudaMemset(products.data(), 0, static_cast<size_t>(products.elements()) * 8));
        STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());
        return all;
    }
};

TEST(ProductsCuda, ACapturedStepGivesTheSameBits) {
    CapturedStep step;
    cudaStream_t stream = nullptr;
    STIPPLE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    step.run({stream});
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));
    const std::vector<unsigned char> direct = step.results();

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    STIPPLE_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    step.run({stream});
    STIPPLE_CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    STIPPLE_CHECK_CUDA(cudaGraphInstantiate(&ready, graph, 0));
    for (int i = 0; i < 3; ++i) {
        STIPPLE_CHECK_CUDA(cudaGraphLaunch(ready, stream));
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));
        EXPECT_TRUE(step.results() == direct) << "launch " << i;
    }
    STIPPLE_CHECK_CUDA(cudaGraphExecDestroy(ready));
    STIPPLE_CHECK_CUDA(cudaGraphDestroy(graph));
    STIPPLE_CHECK_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace stipple::test
