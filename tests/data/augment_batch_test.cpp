#include "stipple/data/augment_batch.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "stipple/core/error.h"
#include "tests/data/augment_batches.h"
#include "tests/ops/guarded.h"
#include "tests/support/devices.h"

namespace stipple::data {
namespace {

using test::Guarded;

constexpr uint64_t kBatchSeed = 0x1234567890ABCDEF;
const Device kNoGpu{DeviceType::cuda, 0};  // of views whose memory nobody reads

class AugmentBatches : public test::OnDevice {
protected:
    BatchRows run(const BatchSet& set, const NamedAugmentation& how, int64_t clouds, int64_t first, int64_t epoch,
                  int64_t first_label) const {
        const Array<int64_t, 1> numbers = test::array_of<int64_t>({first, epoch}, device());
        AugmentBatch batch;
        batch.order = set.order.view(), batch.first = numbers.data(), batch.epoch = numbers.data() + 1;
        batch.clouds = clouds, batch.points = how.points, batch.used = how.used;
        batch.options = how.options, batch.seed = kBatchSeed, batch.first_label = first_label;
        Guarded<float, 2> points({clouds * how.points, 3}, device());
        Guarded<int64_t> labels(clouds * how.points, device());
        augment_batch(set.view(), batch, points.view(), labels.view());
        const Array<float, 2> found = points.get();
        return {{found.span().begin(), found.span().end()}, labels.values()};
    }

    /// Bit for bit but where a GPU has another sine or logarithm than the CPU.
    void expect_equal(const BatchRows& found, const BatchRows& expected, const NamedAugmentation& how) const {
        SCOPED_TRACE(how.name);
        ASSERT_EQ(found.labels, expected.labels);
        ASSERT_EQ(found.points.size(), expected.points.size());
        const bool is_exact = device().type == DeviceType::cpu || !how.has_rounding();
        for (size_t i = 0; i < found.points.size(); ++i) {
            const float a = found.points[i], b = expected.points[i];
            if (std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b)) continue;
            // The float beside it, or 1e-8 where the number is small: jitter itself is rounded to a float.
            ASSERT_TRUE(!is_exact && (std::nextafter(a, b) == b || std::abs(a - b) < 1e-8f))
                << a << " and " << b << " in row " << i / 3;
        }
    }
};
STIPPLE_ON_EVERY_DEVICE(AugmentBatches);

TEST_P(AugmentBatches, EqualTheCloudsOfRecipes) {
    const BatchSet host = stored_set({2048, 1024, 1023, 1025, 2500, 300, 15, 1, 2, 4096, 4095, 16, 17, 2049});
    const BatchSet set = host.to(device());
    for (const NamedAugmentation& how : recipe_augmentations())
        for (int64_t epoch = 0; epoch < 4; ++epoch)
            expect_equal(run(set, how, 14, epoch, epoch, 3), expected_batch(host, how, 14, epoch, kBatchSeed, epoch, 3),
                         how);
}

TEST_P(AugmentBatches, EqualTheCloudsOfAnyOptions) {
    const BatchSet host = stored_set({1, 2, 31, 32, 33, 63, 100, 255, 256, 257, 511, 513, 700, 1000});
    const BatchSet set = host.to(device());
    for (uint64_t number = 0; number < 300; ++number) {
        const NamedAugmentation how = random_augmentation(number, 1000);
        const auto epoch = static_cast<int64_t>(number * number), first = static_cast<int64_t>(number % 14);
        expect_equal(run(set, how, 14, first, epoch, 0), expected_batch(host, how, 14, first, kBatchSeed, epoch, 0),
                     how);
    }
}

TEST_P(AugmentBatches, TakeTheLargestClouds) {
    const BatchSet host = stored_set({4096, 4000, 2047, 4096});
    const BatchSet set = host.to(device());
    for (uint64_t number = 1000; number < 1040; ++number) {
        const NamedAugmentation how = random_augmentation(number, 4096);
        expect_equal(run(set, how, 4, 2, 7, 0), expected_batch(host, how, 4, 2, kBatchSeed, 7, 0), how);
    }
    // Larger ones where the rows stay as they are, and where few of their points are used.
    const BatchSet large = stored_set({9000, 10, 5000}), on_device = large.to(device());
    NamedAugmentation moves = {"large", 9500, 0, {}}, shuffles = {"used", 100, 4096, {}};
    moves.options.mirror = {true, true, true}, moves.options.shift = {1, 1, 1};
    shuffles.options.shuffle = true;
    for (const NamedAugmentation& how : {moves, shuffles})
        expect_equal(run(on_device, how, 3, 1, 7, 0), expected_batch(large, how, 3, 1, kBatchSeed, 7, 0), how);
}

TEST_P(AugmentBatches, OffAreTheStoredBits) {
    const BatchSet host = stored_set({100, 50}), set = host.to(device());
    const BatchRows rows = run(set, {"off", 100, 0, {}}, 1, 1, 3, 0);
    for (int64_t i = 0; i < 300; ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(rows.points[i]), std::bit_cast<uint32_t>(host.points.data()[i])) << i;
    EXPECT_TRUE(run(set, {"none", 10, 0, {}}, 0, 0, 0, 0).points.empty());
}

TEST_P(AugmentBatches, DropoutOfAllPointsKeepsOne) {
    // Small clouds often lose all points: u < r for each, r up to 1.
    const BatchSet host = stored_set(std::vector<int64_t>(200, 2)), set = host.to(device());
    for (const DropoutForm form : {DropoutForm::replace, DropoutForm::remove, DropoutForm::repeat}) {
        NamedAugmentation how = {"form " + std::to_string(static_cast<int>(form)), 3, 0, {}};
        how.options.dropout_ratio = 1, how.options.dropout_form = form;
        expect_equal(run(set, how, 200, 0, 1, 0), expected_batch(host, how, 200, 0, kBatchSeed, 1, 0), how);
    }
}

TEST_P(AugmentBatches, TiesOfThinGoToTheLowestRow) {
    // Copies that dropout made have equal numbers: nearly every threshold is a tie.
    const BatchSet host = stored_set(std::vector<int64_t>(50, 600)), set = host.to(device());
    NamedAugmentation how = {"ties", 600, 0, {}};
    how.options.dropout_ratio = 1, how.options.dropout_form = DropoutForm::repeat;
    how.options.thin_share = 1;
    expect_equal(run(set, how, 50, 0, 1, 0), expected_batch(host, how, 50, 0, kBatchSeed, 1, 0), how);
}

TEST_P(AugmentBatches, PlacesThatThereAreNot) {
    BatchSet host = stored_set({5, 5, 5});
    host.order.data()[1] = 3, host.order.data()[2] = -1;
    host.offsets.data()[3] = 16;  // one point more than there are
    const BatchSet set = host.to(device());
    NamedAugmentation how = {"wrong", 4, 0, {}};
    how.options.shuffle = true;
    // Place by place: order 0, 1 and 2 name the clouds 2 (too large), 3 and -1; the last two lie outside of it.
    for (const int64_t first : {0, 1, 2, -1, 6}) {
        if (device().type == DeviceType::cpu) {
            EXPECT_EQ(test::bad_argument_of([&] { run(set, how, 1, first, 0, 0); }).find("augment_batch: "), 0u);
            continue;
        }
        const BatchRows rows = run(set, how, 1, first, 0, 5);
        for (const float number : rows.points) EXPECT_TRUE(std::isnan(number));
        EXPECT_EQ(rows.labels, std::vector<int64_t>(4, 0));
    }
    EXPECT_FALSE(std::isnan(run(set, how, 1, 4, 0, 0).points[0]));  // cloud 1 is as it should be
    if (device().type == DeviceType::cpu)
        test::bad_argument_of([&] { run(set, how, 1, 4, -1, 0); });
    else
        EXPECT_TRUE(std::isnan(run(set, how, 1, 4, -1, 0).points[0]));
}

TEST(AugmentBatchCpu, IsTheSameOnAnyNumberOfThreads) {
    const BatchSet set = stored_set(std::vector<int64_t>(33, 200));
    const int64_t first = 0, epoch = 2;
    test::expect_same_on_threads([&] {
        AugmentBatch batch;
        batch.order = set.order.view(), batch.first = &first, batch.epoch = &epoch;
        batch.clouds = 33, batch.points = 150, batch.options = all_augmentations();
        std::vector<Array<float, 2>> results;
        results.emplace_back(Array<float, 2>({33 * 150, 3}));
        augment_batch(set.view(), batch, results[0].view());
        return results;
    });
}

TEST(AugmentBatchCpu, KnowsWhatCudaTakes) {
    AugmentOptions moves, options[4];
    moves.rotation_angle = 1, moves.jitter_sigma = 0.01, moves.dropout_form = DropoutForm::repeat;
    EXPECT_TRUE(can_augment_on_device(moves, 1'000'000));
    EXPECT_FALSE(can_augment_on_device(moves, int64_t{1} << 31));
    options[0].choose = 1, options[1].shuffle = true, options[2].dropout_ratio = 0.1, options[3].thin_share = 0.1;
    for (const AugmentOptions& one : options) {
        EXPECT_TRUE(can_augment_on_device(one, kMostDevicePoints));
        EXPECT_FALSE(can_augment_on_device(one, kMostDevicePoints + 1));
    }
}

TEST(AugmentBatchCpu, SaysWhatIsWrong) {
    const BatchSet host = stored_set({10, 20});
    const int64_t number = 0;
    Array<float, 2> out({2 * 8, 3});
    Array<int64_t, 1> labels({2 * 8});
    struct Call {
        StoredClouds set;
        AugmentBatch batch;
        View<float, 2> points;
        View<int64_t, 1> labels;
    };
    const auto complaint = [&](const std::function<void(Call&)>& change) {
        Call call = {host.view(), {}, out.view(), labels.view()};
        call.batch.order = host.order.view(), call.batch.first = call.batch.epoch = &number;
        call.batch.clouds = 2, call.batch.points = 8;
        change(call);
        return test::bad_argument_of([&] { augment_batch(call.set, call.batch, call.points, call.labels); });
    };
    EXPECT_EQ(complaint([](Call& c) { c.batch.options.choose = -1; }), "augment: choose must be from 0, got -1");
    EXPECT_EQ(complaint([](Call& c) { c.batch.points = 9; }), "augment_batch: points must be [18, 3], got [16, 3]");
    EXPECT_EQ(complaint([](Call& c) { c.batch.points = 0; }), "augment_batch: 2 clouds of 0 points");
    EXPECT_EQ(complaint([](Call& c) { c.batch.used = -1; }), "augment_batch: used must be 0 (all) or more, got -1");
    EXPECT_EQ(complaint([](Call& c) { c.batch.first = nullptr; }), "augment_batch: first and epoch must be given");
    EXPECT_EQ(complaint([](Call& c) { c.set.offsets = {}; }), "augment_batch: a set without offsets");
    EXPECT_EQ(complaint([](Call& c) { c.set.labels = {}; }), "augment_batch: labels of the set must be [30], got [0]");
    EXPECT_EQ(complaint([](Call& c) { c.labels = c.labels.slice(0, 3); }),
              "augment_batch: labels must be [16], got [3]");
    EXPECT_EQ(complaint([](Call& c) { c.set.largest = 19; }),
              "augment_batch: item 1 has the points 10 to 30 of 30, at most 19");
    EXPECT_EQ(complaint([](Call& c) {
                  c.batch.order = {c.batch.order.data(), {4}, kNoGpu};
              }),
              "augment_batch: points on cpu, order on cuda:0");
    EXPECT_EQ(complaint([](Call& c) {
                  c.set = {{nullptr, {30, 3}, kNoGpu}, {nullptr, {3}, kNoGpu}, {nullptr, {30}, kNoGpu}, 5000};
                  c.batch.order = {nullptr, {4}, kNoGpu}, c.batch.options.shuffle = true;
                  c.points = {nullptr, {16, 3}, kNoGpu}, c.labels = {nullptr, {16}, kNoGpu};
              }),
              "augment_batch: clouds of 5000 points; on CUDA the most is 4096");
}

}  // namespace
}  // namespace stipple::data
