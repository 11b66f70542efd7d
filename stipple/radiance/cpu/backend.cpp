// Training on the CPU, with the rules of the GPU's.

#include "stipple/radiance/train/backend.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "stipple/core/half.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/radiance/cpu/occupancy.h"
#include "stipple/radiance/cpu/step.h"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/march/skip.h"
#include "stipple/radiance/train/brick_table.h"
#include "stipple/radiance/train/environment_map.h"
#include "stipple/radiance/train/visibility.h"

namespace stipple::radiance {
namespace {

struct Node {
    int32_t x = 0, y = 0, z = 0;
};

Vec3f position(const GridView& view, Node n) {
    return {view.low.x + static_cast<float>(n.x) / view.per_unit.x,
            view.low.y + static_cast<float>(n.y) / view.per_unit.y,
            view.low.z + static_cast<float>(n.z) / view.per_unit.z};
}
bool is_within(const GridView& view, Node n) {
    return n.x >= 0 && n.y >= 0 && n.z >= 0 && n.x < view.size[0] && n.y < view.size[1] && n.z < view.size[2];
}
Node node_of(const BrickGrid& b, int32_t at, int place) {
    return {at / (b.bricks[1] * b.bricks[2]) * kBrick + place / (kBrick * kBrick),
            at / b.bricks[2] % b.bricks[1] * kBrick + place / kBrick % kBrick,
            at % b.bricks[2] * kBrick + place % kBrick};
}

struct Structure {
    GridShape shape;
    BrickTable numbers;
    std::vector<uint64_t> occupied;
    std::vector<uint8_t> free = {};    // BrickGrid::free
    std::vector<uint64_t> built = {};  // nodes that were occupied when the fine grid was built

    BrickGrid view() const {
        BrickGrid grid;
        grid.view = view_of(shape);
        const std::array<int32_t, 3> count = shape.bricks();
        for (size_t axis = 0; axis < 3; ++axis) grid.bricks[axis] = count[axis];
        grid.table = numbers.table.data();
        grid.occupied = occupied.data();
        grid.free = free.empty() ? nullptr : free.data();
        return grid;
    }
    /// After every change of `occupied`; views of before are not valid any more.
    void find_free() { free = free_bricks(shape, numbers.table, occupied); }
    size_t nodes() const { return numbers.place.size() * kBrickNodes; }

    /// body(brick, place, number of the stored node, node), side by side over bricks.
    template <class Body>
    void each_node(const Body& body) const {
        const BrickGrid grid = view();
        parallel_for(numbers.stored(), 64, [&](int64_t begin, int64_t end) {
            for (int64_t brick = begin; brick < end; ++brick) {
                for (int place = 0; place < kBrickNodes; ++place) {
                    body(brick, place, static_cast<size_t>(brick * kBrickNodes + place),
                         node_of(grid, numbers.place[static_cast<size_t>(brick)], place));
                }
            }
        });
    }
};

class CpuBackend : public Backend {
public:
    explicit CpuBackend(const Scene& scene) : only_opaque_(scene.alpha_is_unknown) {
        first_ = {0};
        for (const Photograph& photo : scene.train) {
            cameras_.push_back(view_of(photo.camera));
            first_.push_back(first_.back() + static_cast<uint32_t>(photo.pixels.width() * photo.pixels.height()));
        }
        pixels_.resize(size_t{4} * first_.back());
        for (size_t i = 0; i < scene.train.size(); ++i) {
            std::memcpy(pixels_.data() + size_t{4} * first_[i], scene.train[i].pixels.pixels.data(),
                        size_t{4} * (first_[i + 1] - first_[i]));
        }
    }

    void begin_coarse(const GridShape& grid, const StepConstants& constants) override {
        const std::array<int32_t, 3> count = grid.bricks();
        const std::vector<uint8_t> wanted(static_cast<size_t>(int64_t{count[0]} * count[1] * count[2]), 1);
        structure_ = {grid, number_bricks(wanted), {}};
        structure_.occupied.assign(wanted.size(), 0);
        memory_ = {};
        memory_.channels = 3;
        const int64_t side = constants.environment_side;
        memory_.environment.value.assign(static_cast<size_t>(side * side * 3), 0);
        memory_.density.value.resize(structure_.nodes());
        memory_.features.value.resize(structure_.nodes() * 3);
        memory_.density_rate.resize(structure_.nodes());
        const GridView view = view_of(grid);
        const int cameras = static_cast<int>(cameras_.size());
        structure_.each_node([&](int64_t brick, int place, size_t i, Node node) {
            if (!is_within(view, node)) return;
            const Vec3f p = position(view, node);
            const int seen = views_of(p, cameras_.data(), cameras, constants.near);
            memory_.density_rate[i] = static_cast<float>(seen);
            if (is_near_camera(p, cameras_.data(), cameras, constants.near)) memory_.density.value[i] = kTransparent;
            if (seen > 2) structure_.occupied[static_cast<size_t>(brick)] |= uint64_t{1} << place;
        });
        const float most = *std::max_element(memory_.density_rate.begin(), memory_.density_rate.end());
        STIPPLE_REQUIRE(most > 2, "no place is seen by more than {} of the cameras", most);
        for (float& rate : memory_.density_rate) rate *= 1 / most;
        structure_.find_free();
        memory_.pool = {nullptr, first_.back(), true};
        if (only_opaque_) {
            list_pixels(constants, true);
            memory_.pool.with_replacement = true;
        }
        begin_resolution(constants);
        reset_rates(memory_.state);
    }

    std::vector<float> coarse_density() override {
        std::vector<float> dense(static_cast<size_t>(structure_.shape.nodes()));
        structure_.each_node([&](int64_t, int, size_t i, Node n) {
            if (!is_within(memory_.bricks.view, n)) return;
            dense[static_cast<size_t>(structure_.shape.index(n.x, n.y, n.z))] = memory_.density.value[i];
        });
        return dense;
    }

    std::vector<uint8_t> coarse_seen(float least) override {
        const StepConstants& c = memory_.constants;
        const BrickGrid& bricks = memory_.bricks;
        std::vector<uint8_t> stored(structure_.nodes());
        const int64_t pixels = first_.back(), stride = (pixels + kSeenRays - 1) / kSeenRays;
        parallel_for((pixels + stride - 1) / stride, 1024, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const auto pixel = static_cast<uint32_t>(i * stride);
                const int32_t photo = photo_of(memory_.photos, pixel);
                const CameraView& camera = cameras_[static_cast<size_t>(photo)];
                const auto place = static_cast<int32_t>(pixel - first_[static_cast<size_t>(photo)]);
                const Ray ray = camera_ray(camera, place % camera.width, place / camera.width);
                const March march = march_through(ray, bricks.view.low, bricks.view.high, c.near, c.step);
                const SampleRange inside = samples_inside(bricks.view, march);
                const Vec3f per_node = samples_per_node(bricks.view, march);
                float left = 1;
                for (int32_t k = inside.begin; left >= kLeastTransmittance; ++k) {
                    k = next_sample(bricks, march, per_node, k, inside.end);
                    if (k >= inside.end) break;
                    const Vec3f node = to_nodes(bricks.view, march.at(k));
                    if (!is_occupied(bricks, node)) continue;
                    const Corners corners = corners_of(bricks, node);
                    const float alpha =
                        opacity(interpolate(corners, memory_.density.value.data()) + c.shift, c.opacity_length);
                    if (left * alpha > least) {
                        for (const int32_t corner : corners.node) {
                            std::atomic_ref<uint8_t>(stored[static_cast<size_t>(corner)])
                                .store(1, std::memory_order_relaxed);
                        }
                    }
                    left *= 1 - alpha;
                }
            }
        });
        std::vector<uint8_t> seen(static_cast<size_t>(structure_.shape.nodes()));
        structure_.each_node([&](int64_t, int, size_t i, Node n) {
            if (!is_within(bricks.view, n)) return;
            seen[static_cast<size_t>(structure_.shape.index(n.x, n.y, n.z))] = stored[i];
        });
        return seen;
    }

    void begin_fine(const GridShape& grid, const StepConstants& constants, const std::vector<uint8_t>& occupied,
                    const std::vector<float>& network) override {
        Environment environment = {memory_.constants.environment_side, std::move(memory_.environment.value)};
        if (environment.side > 0) environment = resampled(environment, constants.environment_side);
        memory_ = {};
        memory_.environment.value = std::move(environment.texels);
        memory_.network.value = network;
        structure_ = {};
        build(grid, occupied);
        memory_.density.value.assign(structure_.nodes(), 0);
        memory_.features.value.assign(structure_.nodes() * kFeatures, 0);
        list_pixels(constants, constants.environment_side > 0);
        begin_resolution(constants);
        reset_rates(memory_.state);
    }

    void grow(const GridShape& grid, const StepConstants& constants) override {
        const Structure old = std::move(structure_);
        const BrickGrid old_bricks = old.view();
        const GridView view = view_of(grid);
        std::vector<float> dense(static_cast<size_t>(grid.nodes()));
        std::vector<uint8_t> candidate(dense.size()), occupied(dense.size());
        const auto each = [&](const auto& body) {
            parallel_for(grid.size[0], 1, [&](int64_t begin, int64_t end) {
                for (auto x = static_cast<int32_t>(begin); x < end; ++x) {
                    for (int32_t y = 0; y < grid.size[1]; ++y) {
                        for (int32_t z = 0; z < grid.size[2]; ++z) {
                            body(Node{x, y, z}, static_cast<size_t>(grid.index(x, y, z)));
                        }
                    }
                }
            });
        };
        each([&](Node n, size_t i) {
            const Vec3f node = to_nodes(old_bricks.view, position(view, n));
            dense[i] = interpolate(corners_of(old_bricks, node), memory_.density.value.data());
            candidate[i] = is_occupied(old_bricks, node);
        });
        each([&](Node n, size_t i) {
            if (!candidate[i]) return;
            float most = dense[i];
            for (int k = 0; k < 27; ++k) {
                const Node other = {n.x + k / 9 - 1, n.y + k / 3 % 3 - 1, n.z + k % 3 - 1};
                if (!is_within(view, other)) continue;
                most = std::max(most, dense[static_cast<size_t>(grid.index(other.x, other.y, other.z))]);
            }
            occupied[i] = opacity(most + memory_.constants.shift, constants.voxel_ratio) > constants.threshold;
        });
        build(grid, occupied);
        const std::vector<float> old_features = std::move(memory_.features.value);
        memory_.density.value.assign(structure_.nodes(), 0);
        memory_.features.value.assign(structure_.nodes() * kFeatures, 0);
        structure_.each_node([&](int64_t, int, size_t i, Node n) {
            if (!is_within(view, n)) return;
            memory_.density.value[i] = dense[static_cast<size_t>(grid.index(n.x, n.y, n.z))];
            const Corners corners = corners_of(old_bricks, to_nodes(old_bricks.view, position(view, n)));
            for (int k = 0; k < 8; ++k) {
                if (corners.node[k] < 0) continue;
                const float* from = old_features.data() + int64_t{corners.node[k]} * kFeatures;
                for (size_t ch = 0; ch < kFeatures; ++ch) {
                    memory_.features.value[i * kFeatures + ch] += corners.weight[k] * from[ch];
                }
            }
        });
        begin_resolution(constants);
        reset_rates(memory_.state);
    }

    void refresh_occupancy() override {
        const StepConstants& c = memory_.constants;
        structure_.occupied = cpu::still_occupied(structure_.view(), structure_.numbers, memory_.density.value, c,
                                                  c.occupancy_returns ? structure_.built : structure_.occupied);
        structure_.find_free();
        memory_.bricks = structure_.view();
    }

    int64_t steps(int64_t count) override {
        for (int64_t made = 0; made < count;) {
            cpu::run_step(memory_);
            if (++made < count && caught_signal() != 0) return made;
        }
        return count;
    }

    StepState take_state() override {
        const StepState state = memory_.state;
        memory_.state.squared_error = 0;
        memory_.state.rays = 0;
        return state;
    }
    SampleCounts last_samples() override { return memory_.counts; }
    std::vector<StepPart> profile(int) override { return {}; }

    void pack(Field& field) override {
        const BrickTable seen = number_bricks(bricks_near(structure_.shape, structure_.numbers, structure_.occupied));
        field.brick = seen.table;
        field.occupied.clear(), field.density.clear(), field.features.clear();
        for (const int32_t place : seen.place) {
            const int32_t brick = structure_.numbers.table[static_cast<size_t>(place)];
            // Bricks near an occupied node are stored by construction.
            const size_t first = static_cast<size_t>(brick) * kBrickNodes;
            field.occupied.push_back(structure_.occupied[static_cast<size_t>(brick)]);
            for (size_t i = first; i < first + kBrickNodes; ++i) field.density.push_back(memory_.density.value[i]);
            for (size_t i = first * kFeatures; i < (first + kBrickNodes) * kFeatures; ++i) {
                field.features.push_back(float_to_half(std::clamp(memory_.features.value[i], -65504.0f, 65504.0f)));
            }
        }
        unpack_network(memory_.network.value, field.network);
        field.environment = {memory_.constants.environment_side, memory_.environment.value};
    }

    TrainState save() override {
        const auto numbers = [](const cpu::Values& from) { return MovedNumbers{from.value, from.mean, from.square}; };
        TrainState state;
        state.is_fine = memory_.channels == kFeatures;
        state.grid = structure_.shape;
        state.shift = memory_.constants.shift;
        state.step = memory_.state;
        state.counts = memory_.counts;
        state.place = structure_.numbers.place;
        state.occupied = structure_.occupied;
        state.density = numbers(memory_.density);
        state.features = numbers(memory_.features);
        if (state.is_fine) state.network = numbers(memory_.network);
        if (state.is_fine) state.built = structure_.built;
        state.environment = numbers(memory_.environment);
        state.density_rate = memory_.density_rate;
        if (memory_.pool.list) state.pixels = pixel_bits(list_, first_.back());
        return state;
    }

    void restore(TrainState state, const StepConstants& constants) override {
        require_environment(state, constants);
        structure_ = {state.grid,
                      bricks_at(state.grid, std::move(state.place)),
                      std::move(state.occupied),
                      {},
                      std::move(state.built)};
        structure_.find_free();
        memory_ = {};
        memory_.channels = state.is_fine ? kFeatures : 3;
        const std::pair<cpu::Values*, MovedNumbers*> all[] = {{&memory_.density, &state.density},
                                                              {&memory_.features, &state.features},
                                                              {&memory_.network, &state.network},
                                                              {&memory_.environment, &state.environment}};
        for (const auto& [to, from] : all) to->value = std::move(from->value);
        memory_.density_rate = std::move(state.density_rate);
        list_ = pixel_list(state.pixels);
        memory_.pool = {nullptr, first_.back(), !state.is_fine};
        if (!list_.empty()) memory_.pool = {list_.data(), static_cast<uint32_t>(list_.size()), !state.is_fine};
        begin_resolution(constants);
        for (const auto& [to, from] : all) to->mean = std::move(from->mean), to->square = std::move(from->square);
        memory_.state = state.step;
        memory_.counts = state.counts;
    }

    int64_t peak_bytes() const override { return peak_bytes_; }

private:
    void build(const GridShape& grid, const std::vector<uint8_t>& occupied) {
        structure_ = {grid, {}, {}};
        // First with every brick, to find those near an occupied node.
        const std::array<int32_t, 3> count = grid.bricks();
        structure_.numbers =
            number_bricks(std::vector<uint8_t>(static_cast<size_t>(int64_t{count[0]} * count[1] * count[2]), 1));
        set_occupied(occupied);
        structure_.numbers = number_bricks(bricks_near(grid, structure_.numbers, structure_.occupied));
        if (structure_.numbers.stored() == 0) {
            throw Error(ErrorCode::bad_argument,
                        "nothing opaque was found in the scene's box: check cameras, box, near and far");
        }
        set_occupied(occupied);
        structure_.built = structure_.occupied;
        structure_.find_free();
    }

    void set_occupied(const std::vector<uint8_t>& occupied) {
        structure_.occupied.assign(structure_.numbers.place.size(), 0);
        const GridView view = view_of(structure_.shape);
        structure_.each_node([&](int64_t brick, int place, size_t, Node n) {
            if (!is_within(view, n) || !occupied[static_cast<size_t>(structure_.shape.index(n.x, n.y, n.z))]) return;
            structure_.occupied[static_cast<size_t>(brick)] |= uint64_t{1} << place;
        });
    }

    /// Of all pixels, or of those whose rays meet what is occupied.
    void list_pixels(const StepConstants& constants, bool all) {
        const BrickGrid grid = structure_.view();
        std::vector<std::vector<uint32_t>> of_photo(cameras_.size());
        parallel_for(static_cast<int64_t>(cameras_.size()), 1, [&](int64_t begin, int64_t end) {
            for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
                const CameraView& camera = cameras_[i];
                for (int y = 0; y < camera.height; ++y) {
                    for (int x = 0; x < camera.width; ++x) {
                        const uint32_t pixel = first_[i] + static_cast<uint32_t>(y * camera.width + x);
                        if (only_opaque_ && pixels_[size_t{4} * pixel + 3] == 0) continue;
                        if (!all && !meets_occupied(grid, camera, x, y, constants.near, constants.step)) continue;
                        of_photo[i].push_back(pixel);
                    }
                }
            }
        });
        list_.clear();
        for (const std::vector<uint32_t>& pixels : of_photo) list_.insert(list_.end(), pixels.begin(), pixels.end());
        if (list_.empty()) throw Error(ErrorCode::bad_argument, "no photograph shows what was found");
        memory_.pool = {list_.data(), static_cast<uint32_t>(list_.size()), false};
    }

    void begin_resolution(const StepConstants& constants) {
        memory_.constants = constants;
        memory_.photos = {pixels_.data(), first_.data(), cameras_.data(), static_cast<int32_t>(cameras_.size())};
        memory_.bricks = structure_.view();
        memory_.touched.assign(structure_.numbers.place.size(), 0);
        memory_.density.reset_moments();
        memory_.features.reset_moments();
        memory_.network.reset_moments();
        memory_.environment.reset_moments();
        const auto numbers = static_cast<int64_t>(memory_.density.value.size() + memory_.features.value.size());
        peak_bytes_ = std::max(peak_bytes_, numbers * 20 + static_cast<int64_t>(pixels_.size()));
    }

    bool only_opaque_ = false;  // nothing is known of transparent pixels
    std::vector<uint8_t> pixels_;
    std::vector<uint32_t> first_, list_;
    std::vector<CameraView> cameras_;
    Structure structure_;
    cpu::StepMemory memory_;
    int64_t peak_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const Scene& scene) {
    return std::make_unique<CpuBackend>(scene);
}

}  // namespace stipple::radiance
