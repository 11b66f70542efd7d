// Pictures on a GPU: rays march by warps, in groups; the samples that are seen get their colours on tensor cores.

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/half.h"
#include "stipple/radiance/cuda/colour.cuh"
#include "stipple/radiance/cuda/environment.cuh"
#include "stipple/radiance/cuda/march.cuh"
#include "stipple/radiance/cuda/structure.cuh"
#include "stipple/radiance/render/view_renderer.h"

namespace stipple::radiance::cuda {
namespace {

struct RenderStep {
    CameraView camera;
    int32_t first_pixel = 0;  // of this group of rays
    int32_t rays = 0;
    float near = 0, step = 0, background = 0;
    MarchRule rule = {};
    bool geometry = false, colour = true, has_network = true;
    EnvironmentView environment;  // side 0: the background is the same everywhere
    FineStep fine;                // samples, grids and network of it
    float* pixels = nullptr;      // [pixels, 3]
    float *alpha = nullptr, *depth = nullptr, *normal = nullptr;
    int32_t* overflow = nullptr;
};

__device__ Vec3f density_gradient(const BrickGrid& bricks, const Corners& corners, const float* density) {
    // Weights are products of one factor for each axis: divide the factor out, with its sign.
    Vec3f sum;
    const float fx = corners.weight[4] + corners.weight[5] + corners.weight[6] + corners.weight[7];
    const float fy = corners.weight[2] + corners.weight[3] + corners.weight[6] + corners.weight[7];
    const float fz = corners.weight[1] + corners.weight[3] + corners.weight[5] + corners.weight[7];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        const float d = density[corners.node[k]];
        const float wx = k >> 2 ? fx : 1 - fx, wy = k >> 1 & 1 ? fy : 1 - fy, wz = k & 1 ? fz : 1 - fz;
        sum.x += (k >> 2 ? d : -d) * wy * wz;
        sum.y += (k >> 1 & 1 ? d : -d) * wx * wz;
        sum.z += (k & 1 ? d : -d) * wx * wy;
    }
    const Vec3f unit = bricks.view.per_unit;
    return {sum.x * unit.x, sum.y * unit.y, sum.z * unit.z};
}

__global__ void __launch_bounds__(kWarp* kRayWarps) view_kernel(const __grid_constant__ RenderStep step) {
    const int r = static_cast<int>(blockIdx.x) * kRayWarps + static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    if (r >= step.rays) return;
    const int pixel = step.first_pixel + r;
    const Ray ray = camera_ray(step.camera, pixel % step.camera.width, pixel / step.camera.width);
    const BrickGrid& bricks = step.fine.grids.bricks;
    const float* density = step.fine.grids.density;
    const March march = march_through(ray, bricks.view.low, bricks.view.high, step.near, step.step);
    const Samples& to = step.fine.samples;
    const int64_t base = int64_t{r} * to.capacity;
    int kept = 0;
    float depth = INFINITY;
    Vec3f normal;
    const MarchCounts counts = march_warp(
        bricks, march, step.rule, lane, [&](const Corners& corners) { return density_of(corners, density); },
        [&](const LaneSample& s) {
            const float weight = s.before * s.opacity;
            if (s.kept && step.colour) {
                const int64_t place = base + kept + rank_of(s.kept_lanes, lane);
                to.index[place] = static_cast<uint16_t>(s.index);
                to.weight[place] = weight;
            }
            kept += __popc(s.kept_lanes);
            if (!step.geometry) return;
            const bool crosses = s.opaque && s.before > 0.5f && s.after <= 0.5f;
            const unsigned where = __ballot_sync(kAll, crosses);
            if (where) {
                // A sample stands for half a step before and behind it.
                const float own = march.first_depth + march.depth_step * (static_cast<float>(s.index) - 0.5f +
                                                                          (s.before - 0.5f) / (s.before - s.after));
                depth = __shfl_sync(kAll, own, __ffs(static_cast<int>(where)) - 1);
            }
            if (s.kept) {
                const Corners corners = corners_of(bricks, to_nodes(bricks.view, march.at(s.index)));
                const Vec3f g = density_gradient(bricks, corners, density);
                const float square = dot(g, g);
                if (square > 0) normal = normal - g * (weight * rsqrtf(square));
            }
        });
    const Vec3f d = ray.direction;
    if (kept > 0 && lane < kViewCode) to.view[int64_t{r} * kViewCode + lane] = view_code(d * rsqrtf(dot(d, d)), lane);
    if (step.geometry) {
        for (int axis = 0; axis < 3; ++axis) normal[axis] = warp_sum(normal[axis]);
    }
    if (lane != 0) return;
    RayRecord& record = to.rays[r];
    record.march = march;
    record.left = counts.left;
    record.samples = kept;
    to.kept_of[r] = kept;
    step.alpha[pixel] = 1 - counts.left;
    if (!step.geometry) return;
    step.depth[pixel] = depth;
    const float square = dot(normal, normal);
    const float scale = square > 0 ? rsqrtf(square) : 0;
    for (int axis = 0; axis < 3; ++axis) step.normal[3 * int64_t{pixel} + axis] = scale * normal[axis];
}

/// Also the end of fields without a network: their colours are the first three features.
__global__ void __launch_bounds__(kWarp* kRayWarps) pixel_kernel(const __grid_constant__ RenderStep step) {
    const int r = static_cast<int>(blockIdx.x) * kRayWarps + static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    if (r >= step.rays) return;
    const Samples& s = step.fine.samples;
    const int first = s.first_of[r];
    if (first < 0) {
        if (lane == 0) *step.overflow = 1;
        return;
    }
    float sum[3] = {0, 0, 0};
    for (int j = lane; j < s.kept_of[r]; j += kWarp) {
        float4 colour = s.colour[first + j];
        if (!step.has_network) {
            const float* f = s.features + int64_t{first + j} * kFeatures;
            colour.x = sigmoid(f[0]), colour.y = sigmoid(f[1]), colour.z = sigmoid(f[2]);
        }
        sum[0] += colour.w * colour.x, sum[1] += colour.w * colour.y, sum[2] += colour.w * colour.z;
    }
    float behind[3] = {step.background, step.background, step.background};
    const int pixel = step.first_pixel + r;
    look_behind(step.environment.texels, step.environment.side,
                camera_ray(step.camera, pixel % step.camera.width, pixel / step.camera.width).direction, behind);
    for (int k = 0; k < 3; ++k) sum[k] = warp_sum(sum[k]) + s.rays[r].left * behind[k];
    if (lane < 3) step.pixels[3 * int64_t{pixel} + lane] = lane == 0 ? sum[0] : lane == 1 ? sum[1] : sum[2];
}

class CudaRenderer : public ViewRenderer {
public:
    CudaRenderer(const Field& field, Device device) : settings_(field) {
        meter_.device = device.index;
        STIPPLE_CHECK_CUDA(cudaSetDevice(device.index));
        cudaDeviceProp properties;
        STIPPLE_CHECK_CUDA(cudaGetDeviceProperties(&properties, device.index));
        multiprocessors_ = properties.multiProcessorCount;
        half_network_ = properties.major >= 8;
        STIPPLE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        STIPPLE_CHECK_CUDA(cudaEventCreate(&begin_));
        STIPPLE_CHECK_CUDA(cudaEventCreate(&end_));
        upload(field);
        make_samples(kRays);
    }
    ~CudaRenderer() override {
        cudaStreamSynchronize(stream_);
        cudaEventDestroy(begin_);
        cudaEventDestroy(end_);
        cudaStreamDestroy(stream_);
    }

    RenderedView render(const Camera& camera, const RenderOptions& options) override {
        const int64_t count = int64_t{camera.width} * camera.height;
        STIPPLE_REQUIRE(count < (int64_t{1} << 31), "a picture of {} pixels", count);
        if (pixels_.count() < 3 * count) {
            pixels_ = DeviceArray<float>(meter_, 3 * count);
            alpha_ = DeviceArray<float>(meter_, count);
            depth_ = DeviceArray<float>(meter_, count);
            normal_ = DeviceArray<float>(meter_, 3 * count);
        }
        while (!draw(camera, options, static_cast<int32_t>(count))) make_samples(rays_.count() / 4);
        RenderedView view;
        const auto take = [&](const DeviceArray<float>& from, int64_t channels) {
            Array<float, 3> to({camera.height, camera.width, channels});
            STIPPLE_CHECK_CUDA(cudaMemcpy(to.data(), from.get(), static_cast<size_t>(count * channels) * sizeof(float),
                                          cudaMemcpyDeviceToHost));
            return to;
        };
        if (options.colour) view.colour = take(pixels_, 3);
        view.alpha = take(alpha_, 1);
        if (options.geometry) {
            view.depth = take(depth_, 1);
            view.normal = take(normal_, 3);
        }
        return view;
    }

    double seconds() const override { return seconds_; }

private:
    static constexpr int64_t kRays = 32768, kKeptPerRay = 64;

    /// Kernels read the eight nodes about a place whose nearest node is occupied without asking whether they are
    /// stored.
    static void require_stored_neighbours(const Field& field) {
        BrickTable bricks;
        bricks.table = field.brick;
        bricks.place.resize(static_cast<size_t>(field.stored_bricks()));
        for (size_t i = 0; i < field.brick.size(); ++i) {
            if (field.brick[i] >= 0) bricks.place[static_cast<size_t>(field.brick[i])] = static_cast<int32_t>(i);
        }
        const std::vector<uint8_t> wanted = bricks_near(field.grid, bricks, field.occupied);
        for (size_t i = 0; i < wanted.size(); ++i) {
            STIPPLE_REQUIRE(!wanted[i] || field.brick[i] >= 0,
                            "render: brick {} is beside an occupied node and is not stored", i);
        }
    }

    void upload(const Field& field) {
        require_stored_neighbours(field);
        table_ = DeviceArray<int32_t>(meter_, field.brick);
        occupied_ = DeviceArray<uint64_t>(meter_, field.occupied);
        free_ = DeviceArray<uint8_t>(meter_, free_bricks(field.grid, field.brick, field.occupied));
        density_ = DeviceArray<float>(meter_, field.density);
        std::vector<float> features(field.features.size());
        std::transform(field.features.begin(), field.features.end(), features.begin(), half_to_float);
        features_ = DeviceArray<float>(meter_, features);
        environment_ = DeviceArray<float>(meter_, field.environment.texels);
        has_network_ = !field.network.weight1.empty();
        if (has_network_) {
            network_ = DeviceArray<float>(meter_, pack_network(field.network));
            halves_ = DeviceArray<__half>(meter_, kHalfNumbers);
            halves_.clear(stream_);
            NetworkMemory memory;
            memory.value = network_.get();
            memory.half = halves_.get();
            launch_network_halves(memory, stream_);
            if (half_network_) prepare_colour_kernels();
        }
    }

    void make_samples(int64_t rays) {
        capacity_ = most_samples(settings_.grid, settings_.step * settings_.grid.voxel);
        rays = std::max<int64_t>(rays, kRayWarps);
        // Few rays at a time need no more room than their samples.
        const int64_t kept = std::max<int64_t>(kRays * kKeptPerRay, std::min<int64_t>(rays, 1024) * capacity_);
        rays_ = DeviceArray<RayRecord>(meter_, rays);
        kept_of_ = DeviceArray<int32_t>(meter_, rays);
        first_of_ = DeviceArray<int32_t>(meter_, rays);
        view_ = DeviceArray<float>(meter_, rays * kViewCode);
        index_ = DeviceArray<uint16_t>(meter_, rays * capacity_);
        weight_ = DeviceArray<float>(meter_, rays * capacity_);
        kept_features_ = DeviceArray<float>(meter_, kept * kFeatures);
        kept_ray_ = DeviceArray<int32_t>(meter_, kept);
        kept_colour_ = DeviceArray<float4>(meter_, kept);
        counts_ = DeviceArray<int32_t>(meter_, 2);
    }

    /// Returns false when a group of rays had more samples than there is room for.
    bool draw(const Camera& camera, const RenderOptions& options, int32_t count) {
        RenderStep step;
        step.camera = view_of(camera);
        step.near = settings_.near;
        step.step = settings_.step * settings_.grid.voxel;
        step.background = settings_.background == Background::white ? 1.0f : 0.0f;
        step.environment = {environment_.get(), settings_.environment.side};
        step.rule = {settings_.density_shift, settings_.step * settings_.voxel_ratio, settings_.least_weight};
        step.geometry = options.geometry;
        step.colour = options.colour;
        step.has_network = has_network_;
        step.pixels = pixels_.get();
        step.alpha = alpha_.get();
        step.depth = depth_.get();
        step.normal = normal_.get();
        step.overflow = counts_.get() + 1;
        FineStep& fine = step.fine;
        Samples& s = fine.samples;
        s.rays = rays_.get();
        s.kept_of = kept_of_.get();
        s.first_of = first_of_.get();
        s.view = view_.get();
        s.index = index_.get();
        s.weight = weight_.get();
        s.capacity = capacity_;
        s.features = kept_features_.get();
        s.ray = kept_ray_.get();
        s.colour = kept_colour_.get();
        s.kept_capacity = static_cast<int32_t>(kept_ray_.count());
        s.kept = counts_.get();
        BrickGrid& bricks = fine.grids.bricks;
        bricks.view = view_of(settings_.grid);
        const std::array<int32_t, 3> size = settings_.grid.bricks();
        for (size_t axis = 0; axis < 3; ++axis) bricks.bricks[axis] = size[axis];
        bricks.table = table_.get();
        bricks.occupied = occupied_.get();
        bricks.free = free_.get();
        fine.grids.density = density_.get();
        fine.grids.features = features_.get();
        fine.network.value = network_.get();
        fine.network.half = halves_.get();

        counts_.clear(stream_);
        STIPPLE_CHECK_CUDA(cudaEventRecord(begin_, stream_));
        for (int32_t first = 0; first < count; first += static_cast<int32_t>(rays_.count())) {
            step.first_pixel = first;
            step.rays = fine.constants.rays = std::min(count - first, static_cast<int32_t>(rays_.count()));
            const int blocks = (step.rays + kRayWarps - 1) / kRayWarps;
            view_kernel<<<blocks, kWarp * kRayWarps, 0, stream_>>>(step);
            STIPPLE_CHECK_CUDA(cudaGetLastError());
            if (!options.colour) continue;
            launch_place(s, step.rays, stream_);
            launch_gather(fine, stream_);
            if (has_network_ && half_network_) launch_colour_forward(fine, multiprocessors_, stream_);
            if (has_network_ && !half_network_) launch_colour_single(fine, false, multiprocessors_, stream_);
            pixel_kernel<<<blocks, kWarp * kRayWarps, 0, stream_>>>(step);
            STIPPLE_CHECK_CUDA(cudaGetLastError());
        }
        STIPPLE_CHECK_CUDA(cudaEventRecord(end_, stream_));
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
        float milliseconds = 0;
        STIPPLE_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
        seconds_ = milliseconds / 1000;
        return counts_.download()[1] == 0;
    }

    FieldSettings settings_;
    MemoryMeter meter_;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
    int multiprocessors_ = 0;
    bool half_network_ = false, has_network_ = false;
    double seconds_ = 0;
    int32_t capacity_ = 0;
    DeviceArray<int32_t> table_, kept_of_, first_of_, kept_ray_, counts_;
    DeviceArray<uint64_t> occupied_;
    DeviceArray<uint8_t> free_;
    DeviceArray<float> density_, features_, network_, environment_, view_, weight_, kept_features_;
    DeviceArray<__half> halves_;
    DeviceArray<RayRecord> rays_;
    DeviceArray<uint16_t> index_;
    DeviceArray<float4> kept_colour_;
    DeviceArray<float> pixels_, alpha_, depth_, normal_;
};

}  // namespace

void make_renderer(const Field& field, Device device, std::unique_ptr<ViewRenderer>& to) {
    to = std::make_unique<CudaRenderer>(field, device);
}

}  // namespace stipple::radiance::cuda
