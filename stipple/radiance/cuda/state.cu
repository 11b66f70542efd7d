// What training on a GPU hands to the host and takes from it: fields, and all that its steps depend on.

#include "stipple/radiance/cuda/backend.cuh"

namespace stipple::radiance::cuda {
namespace {

/// Nodes of the coarse stage are (density, red, green, blue) on the device.
void split(const std::vector<float4>& nodes, std::vector<float>& density, std::vector<float>& colour) {
    for (const float4& node : nodes) {
        density.push_back(node.x);
        colour.insert(colour.end(), {node.y, node.z, node.w});
    }
}

std::vector<float4> join(const std::vector<float>& density, const std::vector<float>& colour) {
    std::vector<float4> nodes(density.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
        nodes[i] = {density[i], colour[3 * i], colour[3 * i + 1], colour[3 * i + 2]};
    }
    return nodes;
}

}  // namespace

void CudaBackend::pack(Field& field) {
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    const std::vector<uint64_t> bits = structure_.occupied.download();
    const BrickTable seen = number_bricks(bricks_near(structure_.shape, structure_.numbers, bits));
    std::vector<int32_t> chosen;
    field.brick = seen.table;
    field.occupied.clear();
    for (const int32_t place : seen.place) {
        // Nodes are occupied that were so when the grid was built, or fewer: what is near them is stored.
        const int32_t brick = structure_.numbers.table[static_cast<size_t>(place)];
        chosen.push_back(brick);
        field.occupied.push_back(bits[static_cast<size_t>(brick)]);
    }
    const int64_t nodes = static_cast<int64_t>(chosen.size()) * kBrickNodes;
    if (nodes > 0) {
        const DeviceArray<int32_t> device_chosen(meter_, chosen);
        const DeviceArray<float> density(meter_, nodes);
        const DeviceArray<__half> features(meter_, nodes * kFeatures);
        launch_pack(device_chosen.get(), static_cast<int32_t>(chosen.size()), density_.get(), features_.get(),
                    density.get(), features.get(), stream_);
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
        field.density = density.download();
        field.features.resize(static_cast<size_t>(nodes * kFeatures));
        STIPPLE_CHECK_CUDA(
            cudaMemcpy(field.features.data(), features.get(), field.features.size() * 2, cudaMemcpyDeviceToHost));
    }
    unpack_network(network_value_.download(), field.network);
    field.environment = environment_.download();
}

TrainState CudaBackend::save() {
    TrainState state;
    state.is_fine = is_fine_;
    state.grid = structure_.shape;
    state.shift = (is_fine_ ? fine_.constants : coarse_.constants).shift;
    state.step = read_state();
    state.place = structure_.numbers.place;
    state.occupied = structure_.occupied.download();
    state.environment = environment_.save();
    if (is_fine_) {
        state.counts = last_samples();
        state.built = structure_.built.download();
        state.density = {density_.download(), density_mean_.download(), density_square_.download()};
        state.features = {features_.download(), features_mean_.download(), features_square_.download()};
        state.network = {network_value_.download(), network_mean_.download(), network_square_.download()};
    } else {
        split(coarse_value_.download(), state.density.value, state.features.value);
        split(coarse_mean_.download(), state.density.mean, state.features.mean);
        split(coarse_square_.download(), state.density.square, state.features.square);
        state.density_rate = coarse_rate_.download();
    }
    if (is_fine_ || only_opaque_) state.pixels = pixel_bits(list_.download(), pixels_);
    return state;
}

void CudaBackend::restore(TrainState state, const StepConstants& constants) {
    require_environment(state, constants);
    recorded_.reset();
    structure_ = Structure(meter_, state.grid, bricks_at(state.grid, std::move(state.place)));
    structure_.occupied.upload(state.occupied);
    if (state.is_fine) structure_.built.upload(state.built);
    structure_.find_free(stream_);
    environment_.begin(meter_, constants.environment_side, gradient_bytes(), stream_);
    if (!state.pixels.empty()) list_ = DeviceArray<uint32_t>(meter_, pixel_list(state.pixels));
    if (state.is_fine) {
        density_ = DeviceArray<float>(meter_, state.density.value);
        features_ = DeviceArray<float>(meter_, state.features.value);
        make_network(state.network.value);
        begin_resolution(constants);
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));  // it clears the moments
        density_mean_.upload(state.density.mean);
        density_square_.upload(state.density.square);
        features_mean_.upload(state.features.mean);
        features_square_.upload(state.features.square);
        network_mean_.upload(state.network.mean);
        network_square_.upload(state.network.square);
    } else {
        make_coarse();
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
        coarse_value_.upload(join(state.density.value, state.features.value));
        coarse_mean_.upload(join(state.density.mean, state.features.mean));
        coarse_square_.upload(join(state.density.square, state.features.square));
        coarse_rate_.upload(state.density_rate);
        begin_coarse_steps(constants);
    }
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    environment_.restore(state.environment);
    write_state(state.step);
}

}  // namespace stipple::radiance::cuda
