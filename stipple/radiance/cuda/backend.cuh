#pragma once
// The memory of training on a GPU. Nothing of a step waits for the host. Included by .cu files only.

#include "stipple/radiance/cuda/environment.cuh"
#include "stipple/radiance/cuda/memory.cuh"
#include "stipple/radiance/cuda/recorded_step.cuh"
#include "stipple/radiance/cuda/setup.cuh"
#include "stipple/radiance/cuda/structure.cuh"
#include "stipple/radiance/train/backend.h"

namespace stipple::radiance::cuda {

class CudaBackend : public Backend {
public:
    CudaBackend(const Scene& scene, const TrainOptions& options, Device device);
    ~CudaBackend() override;

    void begin_coarse(const GridShape& grid, const StepConstants& constants) override;
    std::vector<float> coarse_density() override;
    std::vector<uint8_t> coarse_seen(float least) override;
    void begin_fine(const GridShape& grid, const StepConstants& constants, const std::vector<uint8_t>& occupied,
                    const std::vector<float>& network) override;
    void grow(const GridShape& grid, const StepConstants& constants) override;
    void refresh_occupancy() override;
    int64_t steps(int64_t count) override;
    StepState take_state() override;
    SampleCounts last_samples() override;
    std::vector<StepPart> profile(int count) override;
    void pack(Field& field) override;
    TrainState save() override;
    void restore(TrainState state, const StepConstants& constants) override;
    int64_t peak_bytes() const override { return meter_.peak; }

private:
    int64_t gradient_bytes() const { return options_.deterministic ? 8 : 4; }

    void upload(const Scene& scene);
    Photos photos() const;

    /// Bricks about the occupied nodes [nodes], with values of `dense` and the old features, or zeros.
    void build(const GridShape& grid, const DeviceArray<uint8_t>& occupied, const float* dense, const BrickGrid& old,
               const float* old_features);

    /// Of all pixels, or of those whose rays meet what is occupied.
    void list_pixels(const StepConstants& constants, bool all);
    void make_coarse();
    /// Arguments of steps on the coarse grid that is there.
    void begin_coarse_steps(const StepConstants& constants);
    void make_network(const std::vector<float>& network);
    void make_samples(const StepConstants& constants, int32_t capacity, bool kept);

    /// Memory and arguments of steps on the grid that is there.
    void begin_resolution(const StepConstants& constants);

    void begin_state();
    StepState read_state();
    void write_state(const StepState& state) { state_.upload({state}); }

    static constexpr int kKeptPerRay = 128;

    TrainOptions options_;
    MemoryMeter meter_;
    cudaStream_t stream_ = nullptr;
    int multiprocessors_ = 0;
    bool half_network_ = false, is_fine_ = false, only_opaque_ = false;
    RecordedStep recorded_;

    DeviceArray<uchar4> photo_pixels_;
    DeviceArray<uint32_t> first_, list_;
    DeviceArray<CameraView> cameras_;
    uint32_t pixels_ = 0;
    DeviceArray<StepState> state_;
    Structure structure_;

    DeviceArray<RayRecord> rays_;
    DeviceArray<uint16_t> index_;
    DeviceArray<float> opacity_, weight_, view_, kept_features_;
    DeviceArray<int32_t> kept_of_, first_of_, kept_ray_, kept_count_;
    DeviceArray<float> error_of_;
    DeviceArray<float4> kept_colour_;
    int32_t capacity_ = 0;

    DeviceArray<float4> coarse_value_, coarse_mean_, coarse_square_;
    DeviceArray<float> coarse_rate_;
    CoarseStep coarse_;

    DeviceArray<float> density_, density_mean_, density_square_, features_, features_mean_, features_square_;
    DeviceArray<uint8_t> gradient_, features_gradient_, touched_;
    DeviceArray<float> network_value_, network_mean_, network_square_, network_partial_;
    DeviceArray<__half> network_half_;
    EnvironmentArrays environment_;
    FineStep fine_;
};

}  // namespace stipple::radiance::cuda
