// What checkpoints of training hold: states that would be read beyond their arrays are refused.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/radiance/train/checkpoint.h"
#include "stipple/radiance/train/state.h"
#include "stipple/radiance/train/test_views.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace stipple::radiance {
namespace {

constexpr int64_t kStatePixels = 3 * 12 * 12;

/// Two of eight bricks, values that differ, pixels 0, 9 and the last.
TrainState sound_state() {
    TrainState state;
    state.is_fine = true;
    state.grid.size = {6, 7, 8};
    state.grid.box = {{-1, -1, -1}, {1, 1.1f, 1.2f}};
    state.grid.voxel = 0.3f;
    state.shift = -4.6f;
    state.step = {17, 5, 0.98765f, 0.1234f, 3.25, 2560};
    state.counts = {5, 4, 3, 2, 1};
    state.place = {1, 6};
    state.occupied = {1, ~uint64_t{0}};
    state.built = {3, ~uint64_t{0}};
    float next = 0.1f;
    const auto fill = [&](MovedNumbers& numbers, size_t count) {
        for (std::vector<float>* part : {&numbers.value, &numbers.mean, &numbers.square}) {
            part->resize(count);
            for (float& v : *part) v = next = next * 1.00013f - 1e-5f;
        }
    };
    fill(state.density, 128);
    fill(state.features, 128 * kFeatures);
    fill(state.network, kNetworkNumbers);
    fill(state.environment, 3 * 2 * 2);
    const uint32_t list[] = {0, 9, kStatePixels - 1};
    state.pixels = pixel_bits(list, kStatePixels);
    return state;
}

TEST(RadianceTrainState, PixelsAsBits) {
    const std::vector<uint32_t> list = {0, 7, 8, 30, 31};
    EXPECT_EQ(pixel_list(pixel_bits(list, 32)), list);
    EXPECT_EQ(pixel_bits(list, 33).size(), 5u);
    EXPECT_TRUE(pixel_list({}).empty());
}

TEST(RadianceTrainState, FaultsAreFound) {
    EXPECT_EQ(fault_of(sound_state(), kStatePixels), "");
    const auto fault = [](const std::function<void(TrainState&)>& change) {
        TrainState state = sound_state();
        change(state);
        return fault_of(state, kStatePixels);
    };
    const auto expect_fault = [&](const char* word, const std::function<void(TrainState&)>& change) {
        EXPECT_NE(fault(change).find(word), std::string::npos) << word << ": " << fault(change);
    };
    expect_fault("size", [](TrainState& s) { s.grid.size[1] = 1; });
    expect_fault("size", [](TrainState& s) { s.grid.size[1] = INT32_MAX; });
    expect_fault("box", [](TrainState& s) { s.grid.box.low[2] = NAN; });
    expect_fault("voxel", [](TrainState& s) { s.grid.voxel = 0; });
    expect_fault("shift", [](TrainState& s) { s.shift = INFINITY; });
    expect_fault("step", [](TrainState& s) { s.step.step = -1; });
    expect_fault("place", [](TrainState& s) { s.place = {6, 1}; });
    expect_fault("place", [](TrainState& s) { s.place = {1, 1}; });
    expect_fault("place", [](TrainState& s) { s.place = {1, 8}; });
    expect_fault("place", [](TrainState& s) { s.place = {-1, 6}; });
    expect_fault("place", [](TrainState& s) { s.place = {}; });
    expect_fault("place", [](TrainState& s) { s.is_fine = false; });
    expect_fault("occupied", [](TrainState& s) { s.occupied.pop_back(); });
    expect_fault("density", [](TrainState& s) { s.density.mean.pop_back(); });
    expect_fault("features", [](TrainState& s) { s.features.square.push_back(0); });
    expect_fault("network", [](TrainState& s) { s.network = {}; });
    expect_fault("built", [](TrainState& s) { s.built.pop_back(); });
    expect_fault("environment", [](TrainState& s) { s.environment.mean.pop_back(); });
    expect_fault("density_rate", [](TrainState& s) { s.density_rate = {1}; });
    expect_fault("pixels", [](TrainState& s) { s.pixels.pop_back(); });
    expect_fault("pixels", [](TrainState& s) { s.pixels = {}; });
    expect_fault("pixels", [](TrainState& s) { s.pixels.assign(s.pixels.size(), 0); });
    TrainState state = sound_state();
    EXPECT_EQ(not_finite_in(state), "");
    state.features.mean[3] = NAN;
    EXPECT_EQ(not_finite_in(state), "features");
    // A pixel beyond the last.
    EXPECT_NE(fault_of(sound_state(), kStatePixels - 1), "");
}

TEST(RadianceTrainState, ReadsBackAsItWas) {
    const test::TemporaryFolder folder(test::Where::memory);
    const TrainState state = sound_state();
    const Scene scene = test::analytic_scene(12, 3, 0, 0);
    const TrainOrigin origin = origin_of(scene, small_options(), {});
    RunFolder::create(folder / "run", "");
    save_training(folder / "run", 40, {sound_state(), origin, 21.125, 20.5}, {});
    std::vector<std::string> warnings;
    const SavedTraining back = load_training(*find_checkpoint(folder / "run", Damaged::refuse, warnings), origin);
    const TrainState& s = back.state;
    EXPECT_EQ(back.psnr, 21.125);
    EXPECT_EQ(back.test_psnr, 20.5);
    EXPECT_EQ(s.is_fine, true);
    EXPECT_EQ(s.grid.size, state.grid.size);
    for (int axis = 0; axis < 3; ++axis) {
        EXPECT_EQ(s.grid.box.low[axis], state.grid.box.low[axis]);
        EXPECT_EQ(s.grid.box.high[axis], state.grid.box.high[axis]);
    }
    EXPECT_EQ(s.grid.voxel, state.grid.voxel);
    EXPECT_EQ(s.shift, state.shift);
    EXPECT_EQ(std::memcmp(&s.step, &state.step, sizeof s.step), 0);
    EXPECT_EQ(std::memcmp(&s.counts, &state.counts, sizeof s.counts), 0);
    EXPECT_EQ(s.place, state.place);
    EXPECT_EQ(s.occupied, state.occupied);
    EXPECT_EQ(s.density.value, state.density.value);
    EXPECT_EQ(s.density.square, state.density.square);
    EXPECT_EQ(s.features.mean, state.features.mean);
    EXPECT_EQ(s.network.value, state.network.value);
    EXPECT_EQ(s.network.mean, state.network.mean);
    EXPECT_EQ(s.pixels, state.pixels);
    // A state that no training has: sound bytes, wrong meaning.
    TrainState wrong = sound_state();
    wrong.place = {6, 1};
    save_training(folder / "run", 41, {std::move(wrong), origin, 0, {}}, {});
    EXPECT_ERROR(load_training(*find_checkpoint(folder / "run", Damaged::refuse, warnings), origin), bad_file,
                 "state.safetensors: place");
    TrainOrigin other = origin;
    other.device = "cuda";
    EXPECT_ERROR(require_same(other, origin, "run"), bad_config, "the run was on cuda, not on cpu");
}

TEST(RadianceTrainState, TheFingerprintIsOfThePhotographsAlone) {
    const Scene scene = test::analytic_scene(12, 3, 2, 0);
    const auto print = [](const Scene& of) { return origin_of(of, small_options(), {}).fingerprint; };
    const int before = threads();
    set_threads(1);
    const std::string one = print(scene);
    set_threads(3);
    EXPECT_EQ(print(scene), one);
    set_threads(before);
    EXPECT_EQ(print(test::analytic_scene(12, 3, 0, 0)), one);
    EXPECT_NE(print(test::analytic_scene(12, 3, 2, 1)), one);
    Scene order = test::analytic_scene(12, 3, 2, 0);
    std::swap(order.train[0], order.train[2]);
    EXPECT_NE(print(order), one);
    Scene far = test::analytic_scene(12, 3, 2, 0);
    far.far += 1;
    EXPECT_NE(print(far), one);
}

TEST(RadianceTestViews, AreSpread) {
    EXPECT_EQ(spread_views(200, 3), (std::vector<size_t>{0, 66, 133}));
    EXPECT_EQ(spread_views(2, 5), (std::vector<size_t>{0, 1}));
    EXPECT_TRUE(spread_views(0, 3).empty());
}

}  // namespace
}  // namespace stipple::radiance
