// Training on a GPU: recorded steps, and what happens between them.

#include "stipple/radiance/cuda/backend.cuh"
#include "stipple/radiance/cuda/colour.cuh"
#include "stipple/radiance/cuda/step_counts.cuh"

namespace stipple::radiance::cuda {

CudaBackend::CudaBackend(const Scene& scene, const TrainOptions& options, Device device) : options_(options) {
    meter_.device = device.index;
    STIPPLE_CHECK_CUDA(cudaSetDevice(device.index));
    cudaDeviceProp properties;
    STIPPLE_CHECK_CUDA(cudaGetDeviceProperties(&properties, device.index));
    multiprocessors_ = properties.multiProcessorCount;
    half_network_ = options.half_network && properties.major >= 8;
    if (half_network_) prepare_colour_kernels();
    STIPPLE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    only_opaque_ = scene.alpha_is_unknown;
    upload(scene);
    state_ = DeviceArray<StepState>(meter_, 1);
}

CudaBackend::~CudaBackend() {
    cudaStreamSynchronize(stream_);
    recorded_.reset();
    cudaStreamDestroy(stream_);
}

void CudaBackend::begin_coarse(const GridShape& grid, const StepConstants& constants) {
    std::vector<uint8_t> wanted(static_cast<size_t>(int64_t{grid.bricks()[0]} * grid.bricks()[1] * grid.bricks()[2]),
                                1);
    structure_ = Structure(meter_, grid, number_bricks(wanted));
    make_coarse();
    launch_coarse_nodes(structure_.view(), structure_.place.get(), structure_.numbers.stored(), cameras_.get(),
                        static_cast<int>(cameras_.count()), constants.near, coarse_rate_.get(), coarse_value_.get(),
                        structure_.occupied.get(), stream_);
    structure_.find_free(stream_);
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    const std::vector<float> counts = coarse_rate_.download();
    const float most = *std::max_element(counts.begin(), counts.end());
    STIPPLE_REQUIRE(most > 2, "no place is seen by more than {} of the cameras", most);
    launch_scale(coarse_rate_.get(), coarse_rate_.count(), 1 / most, stream_);
    if (only_opaque_) list_pixels(constants, true);
    environment_.begin(meter_, constants.environment_side, gradient_bytes(), stream_);
    begin_coarse_steps(constants);
    begin_state();
}

void CudaBackend::make_coarse() {
    const int64_t nodes = structure_.nodes();
    coarse_value_ = DeviceArray<float4>(meter_, nodes);
    coarse_mean_ = DeviceArray<float4>(meter_, nodes);
    coarse_square_ = DeviceArray<float4>(meter_, nodes);
    coarse_rate_ = DeviceArray<float>(meter_, nodes);
    gradient_ = DeviceArray<uint8_t>(meter_, nodes * 4 * gradient_bytes());
    coarse_mean_.clear(stream_);
    coarse_square_.clear(stream_);
    gradient_.clear(stream_);
}

void CudaBackend::begin_coarse_steps(const StepConstants& constants) {
    make_samples(constants, most_samples(structure_.shape, constants.step), false);
    coarse_ = {};
    coarse_.constants = constants;
    coarse_.photos = photos();
    coarse_.pool = {nullptr, pixels_, true};
    if (only_opaque_) coarse_.pool = {list_.get(), static_cast<uint32_t>(list_.count()), true};
    coarse_.state = state_.get();
    coarse_.bricks = structure_.view();
    coarse_.environment = environment_.memory();
    coarse_.value = coarse_value_.get();
    coarse_.mean = coarse_mean_.get();
    coarse_.square = coarse_square_.get();
    coarse_.gradient = gradient_.get();
    coarse_.rate = coarse_rate_.get();
    coarse_.nodes = structure_.nodes();
    coarse_.error_of = error_of_.get();
    coarse_.index = index_.get();
    coarse_.opacity = opacity_.get();
    coarse_.weight = weight_.get();
    coarse_.capacity = capacity_;
    is_fine_ = false;
}

std::vector<float> CudaBackend::coarse_density() {
    DeviceArray<float> dense(meter_, structure_.shape.nodes());
    launch_unpack(structure_.view(), reinterpret_cast<const float*>(coarse_value_.get()), 4, dense.get(), stream_);
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    return dense.download();
}

std::vector<uint8_t> CudaBackend::coarse_seen(float least) {
    DeviceArray<uint8_t> stored(meter_, structure_.nodes());
    stored.clear(stream_);
    const auto stride = static_cast<uint32_t>((int64_t{pixels_} + kSeenRays - 1) / kSeenRays);
    launch_seen(coarse_, pixels_, stride, least, stored.get(), stream_);
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    const std::vector<uint8_t> of_bricks = stored.download();
    const GridShape& shape = structure_.shape;
    const BrickGrid grid = structure_.view();
    std::vector<uint8_t> seen(static_cast<size_t>(shape.nodes()));
    for (int32_t x = 0; x < shape.size[0]; ++x) {
        for (int32_t y = 0; y < shape.size[1]; ++y) {
            for (int32_t z = 0; z < shape.size[2]; ++z) {
                // All bricks of the coarse grid are stored, in their order.
                const int64_t brick = (int64_t{x / kBrick} * grid.bricks[1] + y / kBrick) * grid.bricks[2] + z / kBrick;
                seen[static_cast<size_t>(shape.index(x, y, z))] =
                    of_bricks[static_cast<size_t>(brick * kBrickNodes + BrickGrid::place(x, y, z))];
            }
        }
    }
    return seen;
}

void CudaBackend::begin_fine(const GridShape& grid, const StepConstants& constants,
                             const std::vector<uint8_t>& occupied, const std::vector<float>& network) {
    recorded_.reset();
    coarse_value_ = {}, coarse_mean_ = {}, coarse_square_ = {}, coarse_rate_ = {}, gradient_ = {};
    const DeviceArray<uint8_t> dense_occupied(meter_, occupied);
    build(grid, dense_occupied, nullptr, BrickGrid{}, nullptr);
    make_network(network);
    environment_.begin(meter_, constants.environment_side, gradient_bytes(), stream_, true);
    list_pixels(constants, constants.environment_side > 0);
    begin_resolution(constants);
    begin_state();
}

void CudaBackend::make_network(const std::vector<float>& network) {
    network_value_ = DeviceArray<float>(meter_, network);
    network_mean_ = DeviceArray<float>(meter_, kNetworkNumbers);
    network_square_ = DeviceArray<float>(meter_, kNetworkNumbers);
    network_half_ = DeviceArray<__half>(meter_, kHalfNumbers);
    network_partial_ = DeviceArray<float>(meter_, int64_t{multiprocessors_} * kNetworkNumbers);
    network_half_.clear(stream_);
    fine_ = {};
    fine_.network = {network_value_.get(), network_mean_.get(),    network_square_.get(),
                     network_half_.get(),  network_partial_.get(), multiprocessors_};
    launch_network_halves(fine_.network, stream_);
}

void CudaBackend::grow(const GridShape& grid, const StepConstants& constants) {
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    recorded_.reset();
    density_mean_ = {}, density_square_ = {}, features_mean_ = {}, features_square_ = {};
    gradient_ = {}, features_gradient_ = {}, touched_ = {};
    const GridView view = view_of(grid);
    DeviceArray<float> dense(meter_, grid.nodes());
    DeviceArray<uint8_t> occupied(meter_, grid.nodes());
    {
        const DeviceArray<uint8_t> candidate(meter_, grid.nodes());
        launch_resample(structure_.view(), density_.get(), view, dense.get(), candidate.get(), stream_);
        launch_prune(view, dense.get(), candidate.get(), fine_.constants.shift, constants.voxel_ratio,
                     constants.threshold, occupied.get(), stream_);
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    }
    const Structure old = std::move(structure_);
    const DeviceArray<float> old_features = std::move(features_);
    density_ = {};
    build(grid, occupied, dense.get(), old.view(), old_features.get());
    begin_resolution(constants);
    StepState state = read_state();
    reset_rates(state);
    write_state(state);
}

void CudaBackend::refresh_occupancy() {
    const StepConstants& c = is_fine_ ? fine_.constants : coarse_.constants;
    const float* density = is_fine_ ? density_.get() : reinterpret_cast<const float*>(coarse_value_.get());
    launch_refresh(structure_.view(), structure_.place.get(), structure_.numbers.stored(), density, is_fine_ ? 1 : 4,
                   c.shift, c.voxel_ratio, c.threshold,
                   (c.occupancy_returns ? structure_.built : structure_.occupied).get(), structure_.occupied.get(),
                   stream_);
    structure_.find_free(stream_);
}

int64_t CudaBackend::steps(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        recorded_.run(stream_, [&] {
            if (is_fine_) {
                launch_fine_step(fine_, options_.deterministic, half_network_, multiprocessors_, stream_);
            } else {
                launch_coarse_step(coarse_, options_.deterministic, stream_);
            }
        });
    }
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    return count;
}

StepState CudaBackend::take_state() {
    StepState state = read_state();
    const StepState result = state;
    state.squared_error = 0;
    state.rays = 0;
    write_state(state);
    return result;
}

SampleCounts CudaBackend::last_samples() {
    SampleCounts counts;
    for (const RayRecord& ray : rays_.download()) {
        counts.in_box += ray.in_box;
        counts.in_mask += ray.in_mask;
        counts.opaque += ray.samples;
    }
    for (const int32_t kept : kept_of_.download()) counts.kept += kept;
    for (const int32_t first : first_of_.download()) counts.dropped_rays += first < 0;
    return counts;
}

std::vector<StepPart> CudaBackend::profile(int count) {
    std::vector<StepPart> parts;
    std::vector<cudaEvent_t> events;
    for (int i = 0; i < count; ++i) {
        size_t used = 0;
        const auto mark = [&](const char* name) {
            if (used == events.size()) {
                events.emplace_back();
                STIPPLE_CHECK_CUDA(cudaEventCreate(&events.back()));
                if (used > 0) parts.push_back({name, 0});
            }
            STIPPLE_CHECK_CUDA(cudaEventRecord(events[used++], stream_));
        };
        mark("");
        launch_fine_step(fine_, options_.deterministic, half_network_, multiprocessors_, stream_, mark);
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
        for (size_t k = 0; k < parts.size(); ++k) {
            float milliseconds = 0;
            STIPPLE_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, events[k], events[k + 1]));
            parts[k].milliseconds += milliseconds / static_cast<double>(count);
        }
    }
    for (const cudaEvent_t event : events) cudaEventDestroy(event);
    count_traffic(count_step(fine_, options_.deterministic, half_network_, multiprocessors_, meter_.device, stream_),
                  parts);
    return parts;
}

void CudaBackend::upload(const Scene& scene) {
    std::vector<uint32_t> first = {0};
    std::vector<CameraView> cameras;
    for (const Photograph& photo : scene.train) {
        cameras.push_back(view_of(photo.camera));
        first.push_back(first.back() + static_cast<uint32_t>(photo.pixels.width() * photo.pixels.height()));
    }
    pixels_ = first.back();
    photo_pixels_ = DeviceArray<uchar4>(meter_, pixels_);
    for (size_t i = 0; i < scene.train.size(); ++i) {
        STIPPLE_CHECK_CUDA(cudaMemcpy(photo_pixels_.get() + first[i], scene.train[i].pixels.pixels.data(),
                                      size_t{4} * (first[i + 1] - first[i]), cudaMemcpyHostToDevice));
    }
    first_ = DeviceArray<uint32_t>(meter_, first);
    cameras_ = DeviceArray<CameraView>(meter_, cameras);
}

Photos CudaBackend::photos() const {
    return {reinterpret_cast<const uint8_t*>(photo_pixels_.get()), first_.get(), cameras_.get(),
            static_cast<int32_t>(cameras_.count())};
}

void CudaBackend::build(const GridShape& grid, const DeviceArray<uint8_t>& occupied, const float* dense,
                        const BrickGrid& old, const float* old_features) {
    const std::array<int32_t, 3> count = grid.bricks();
    const int32_t bricks[3] = {count[0], count[1], count[2]};
    const DeviceArray<uint8_t> wanted(meter_, int64_t{count[0]} * count[1] * count[2]);
    launch_wanted(view_of(grid), bricks, occupied.get(), wanted.get(), stream_);
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    structure_ = Structure(meter_, grid, number_bricks(wanted.download()));
    if (structure_.numbers.stored() == 0) {
        throw Error(ErrorCode::bad_argument,
                    "nothing opaque was found in the scene's box: check cameras, box, near and far");
    }
    density_ = DeviceArray<float>(meter_, structure_.nodes());
    features_ = DeviceArray<float>(meter_, structure_.nodes() * kFeatures);
    launch_fill(structure_.view(), structure_.place.get(), structure_.numbers.stored(), occupied.get(), dense, old,
                old_features, density_.get(), features_.get(), structure_.occupied.get(), stream_);
    structure_.keep_built(stream_);
    structure_.find_free(stream_);
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
}

void CudaBackend::list_pixels(const StepConstants& constants, bool all) {
    const BrickGrid bricks = structure_.view();
    const int64_t blocks = (int64_t{pixels_} + kPixelBlock - 1) / kPixelBlock;
    const DeviceArray<uint32_t> bits(meter_, blocks * (kPixelBlock / kWarp));
    DeviceArray<uint32_t> counts(meter_, blocks);
    launch_pixels(photos(), pixels_, all ? nullptr : &bricks, only_opaque_, constants.near, constants.step, bits.get(),
                  counts.get(), stream_);
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    std::vector<uint32_t> first = counts.download();
    uint32_t total = 0;
    for (uint32_t& n : first) {
        const uint32_t before = total;
        total += n;
        n = before;
    }
    if (total == 0) {
        throw Error(ErrorCode::bad_argument, "no photograph shows what was found");
    }
    counts.upload(first);
    list_ = DeviceArray<uint32_t>(meter_, total);
    launch_list(bits.get(), counts.get(), pixels_, list_.get(), stream_);
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
}

void CudaBackend::make_samples(const StepConstants& constants, int32_t capacity, bool kept) {
    index_ = {}, opacity_ = {}, weight_ = {};
    capacity_ = capacity;
    const int64_t count = int64_t{constants.rays} * capacity;
    rays_ = DeviceArray<RayRecord>(meter_, constants.rays);
    kept_of_ = DeviceArray<int32_t>(meter_, constants.rays);
    first_of_ = DeviceArray<int32_t>(meter_, constants.rays);
    error_of_ = DeviceArray<float>(meter_, constants.rays);
    index_ = DeviceArray<uint16_t>(meter_, count);
    opacity_ = DeviceArray<float>(meter_, count);
    weight_ = DeviceArray<float>(meter_, count);
    rays_.clear(stream_);
    kept_of_.clear(stream_);
    first_of_.clear(stream_);
    if (!kept || kept_features_.get()) return;
    const int64_t most = int64_t{constants.rays} * kKeptPerRay;
    view_ = DeviceArray<float>(meter_, int64_t{constants.rays} * kViewCode);
    kept_features_ = DeviceArray<float>(meter_, most * kFeatures);
    kept_ray_ = DeviceArray<int32_t>(meter_, most);
    kept_colour_ = DeviceArray<float4>(meter_, most);
    kept_count_ = DeviceArray<int32_t>(meter_, 1);
}

void CudaBackend::begin_resolution(const StepConstants& constants) {
    const int64_t nodes = structure_.nodes();
    density_mean_ = DeviceArray<float>(meter_, nodes);
    density_square_ = DeviceArray<float>(meter_, nodes);
    features_mean_ = DeviceArray<float>(meter_, nodes * kFeatures);
    features_square_ = DeviceArray<float>(meter_, nodes * kFeatures);
    gradient_ = DeviceArray<uint8_t>(meter_, nodes * gradient_bytes());
    features_gradient_ = DeviceArray<uint8_t>(meter_, nodes * kFeatures * gradient_bytes());
    touched_ = DeviceArray<uint8_t>(meter_, structure_.numbers.stored());
    for (DeviceArray<float>* moments :
         {&density_mean_, &density_square_, &features_mean_, &features_square_, &network_mean_, &network_square_}) {
        moments->clear(stream_);
    }
    gradient_.clear(stream_);
    features_gradient_.clear(stream_);
    touched_.clear(stream_);
    environment_.reset_moments(stream_);
    fine_.environment = environment_.memory();
    make_samples(constants, most_samples(structure_.shape, constants.step), true);

    fine_.constants = constants;
    fine_.photos = photos();
    fine_.pool = {list_.get(), static_cast<uint32_t>(list_.count()), false};
    fine_.state = state_.get();
    fine_.brick_place = structure_.place.get();
    Samples& s = fine_.samples;
    s = {};
    s.rays = rays_.get();
    s.kept_of = kept_of_.get();
    s.first_of = first_of_.get();
    s.error_of = error_of_.get();
    s.view = view_.get();
    s.index = index_.get();
    s.opacity = opacity_.get();
    s.weight = weight_.get();
    s.capacity = capacity_;
    s.features = kept_features_.get();
    s.ray = kept_ray_.get();
    s.colour = kept_colour_.get();
    s.kept_capacity = static_cast<int32_t>(kept_ray_.count());
    s.kept = kept_count_.get();
    Grids& g = fine_.grids;
    g = {};
    g.bricks = structure_.view();
    g.density = density_.get();
    g.density_mean = density_mean_.get();
    g.density_square = density_square_.get();
    g.features = features_.get();
    g.features_mean = features_mean_.get();
    g.features_square = features_square_.get();
    g.density_gradient = gradient_.get();
    g.features_gradient = features_gradient_.get();
    g.touched = touched_.get();
    g.stored = structure_.numbers.stored();
    // Half precision loses what is below 6e-8, and gradients of single samples are divided by the number of rays.
    // Adam moves by signs: small gradients count as much as large ones.
    fine_.gradient_scale = half_network_ ? 4096.0f * static_cast<float>(constants.rays) : 1.0f;
    is_fine_ = true;
}

void CudaBackend::begin_state() {
    StepState state;
    reset_rates(state);
    write_state(state);
}

StepState CudaBackend::read_state() {
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    return state_.download()[0];
}

void make_backend(const Scene& scene, const TrainOptions& options, Device device, std::unique_ptr<Backend>& to) {
    to = std::make_unique<CudaBackend>(scene, options, device);
}

}  // namespace stipple::radiance::cuda
