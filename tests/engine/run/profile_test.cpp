// What a context tells a profile: every step by its layers, for any way in which the work is divided.

#include "stipple/core/profile.h"

#include <gtest/gtest.h>

#include <set>

#include "stipple/core/array.h"
#include "stipple/engine/program.h"
#include "stipple/engine/run/step_profile.h"
#include "stipple/engine/time_engine.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/registry.h"
#include "tests/support/devices.h"
#include "tests/support/trace.h"

namespace stipple::engine {
namespace {

Engine profiled_engine(Device device, int64_t batch, int64_t points) {
    const network::Network net = models::pointnet_classifier({.classes = 5});
    Options options;
    options.device = device;
    options.max_batch = batch;
    options.max_points = points;
    return compile(net, network::initial_weights(net, 1), options);
}

struct ProfiledRun {
    Array<float, 2> points, logits;
    ProfiledRun(const ops::Batch& batch, Device device) : logits({batch.clouds(), 5}, device) {
        Array<float, 2> host({batch.rows(), 3});
        for (int64_t i = 0; i < host.elements(); ++i) host.data()[i] = static_cast<float>(i % 11) / 11;
        points = host.to(device);
    }
    std::vector<float> run(Context& context, const ops::Batch& batch) {
        context.run(batch, {{"points", points.view()}}, {{"logits", logits.view()}});
        const Array<float, 2> host = logits.to(Device{});
        return {host.data(), host.data() + host.elements()};
    }
};

class EngineProfile : public test::OnDevice {};
STIPPLE_ON_EVERY_DEVICE(EngineProfile);

TEST_P(EngineProfile, EveryStepHasARow) {
    // Few large clouds are cut into pieces, many small ones run one by one.
    for (const ops::Batch& batch : {ops::Batch::dense(1, 200), ops::Batch::dense(24, 16)}) {
        SCOPED_TRACE(batch.clouds());
        const Engine engine = profiled_engine(device(), batch.clouds(), batch.largest());
        const std::vector<std::string> titles = step_titles(engine.program());
        Context context(engine);
        ProfiledRun run(batch, device());
        const std::vector<float> plain = run.run(context, batch);
        Profile profile;
        context.profile_into(&profile, "a run");
        constexpr int64_t kRuns = 3;
        for (int64_t i = 0; i < kRuns; ++i) EXPECT_EQ(run.run(context, batch), plain);
        context.profile_into(nullptr);
        run.run(context, batch);  // tells nobody

        const std::vector<ProfileRow> rows = profile.rows();
        ASSERT_EQ(rows.size(), 1 + titles.size());
        EXPECT_EQ(rows[0].name, "a run");
        EXPECT_EQ(rows[0].calls, kRuns);
        double steps = 0, gpu_steps = 0;
        for (size_t i = 0; i < titles.size(); ++i) {
            const ProfileRow& row = rows[i + 1];
            EXPECT_EQ(row.name, titles[i]);
            EXPECT_EQ(row.parent, 0);
            EXPECT_TRUE(row.calls == kRuns || row.calls == kRuns * batch.clouds()) << row.name << ": " << row.calls;
            const Step& step = engine.program().steps[i];
            const TensorType& type = engine.program().values[static_cast<size_t>(step.output)].type;
            const int64_t numbers = type.level == Level::cloud ? batch.clouds() : batch.rows() * type.width;
            EXPECT_EQ(row.bytes, kRuns * numbers * type.channels * 4) << row.name;
            steps += row.cpu_total;
            gpu_steps += row.gpu_total;
        }
        EXPECT_LE(steps, rows[0].cpu_total);
        EXPECT_EQ(profile.has_gpu(), device().type == DeviceType::cuda);
        if (profile.has_gpu()) {
            EXPECT_GT(gpu_steps, 0);
            EXPECT_LE(gpu_steps, rows[0].gpu_total * 1.001);  // events have steps of half a microsecond
        }
    }
}

TEST_P(EngineProfile, TheTraceHasEverySpanWithinItsRun) {
    const ops::Batch batch = ops::Batch::dense(8, 32);
    const Engine engine = profiled_engine(device(), 8, 32);
    Array<float, 2> points({batch.rows(), 3});
    for (int64_t i = 0; i < points.elements(); ++i) points.data()[i] = static_cast<float>(i % 5);
    Profile profile;
    profile_engine(engine, batch, {{"points", points.view()}}, 2, profile, "fp32");
    MemorySink sink;
    write_trace(profile, sink);
    const std::vector<test::TraceEvent> spans =
        test::spans_of({reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()});
    std::set<std::string> names;
    std::vector<const test::TraceEvent*> runs;
    for (const test::TraceEvent& span : spans) {
        EXPECT_GE(span.duration, 0);
        names.insert(span.name);
        if (span.name == "fp32" && span.category == "cpu") runs.push_back(&span);
    }
    EXPECT_EQ(runs.size(), 2u);
    for (const std::string& title : step_titles(engine.program())) EXPECT_TRUE(names.contains(title)) << title;
    for (const test::TraceEvent& span : spans) {
        const bool is_within = std::any_of(runs.begin(), runs.end(), [&](const test::TraceEvent* run) {
            return span.begin >= run->begin - 1e-3 && span.begin + span.duration <= run->begin + run->duration + 1e-3;
        });
        EXPECT_TRUE(is_within || span.category == "gpu") << span.name;
    }
}

TEST(EngineStepTitles, NameTheirLayersAndAreAllDifferent) {
    for (const models::ModelEntry& model : models::model_table()) {
        SCOPED_TRACE(model.name);
        const network::Network net = models::build_model(model.name, {});
        const Program program = lower(net, network::initial_weights(net, 0));
        const std::vector<std::string> titles = step_titles(program);
        ASSERT_EQ(titles.size(), program.steps.size());
        EXPECT_EQ(std::set<std::string>(titles.begin(), titles.end()).size(), titles.size());
        for (size_t i = 0; i < titles.size(); ++i) {
            EXPECT_NE(titles[i].find(program.steps[i].name), std::string::npos);
            for (const Dense& layer : program.steps[i].layers)
                EXPECT_NE(titles[i].find(layer.name), std::string::npos) << titles[i];
        }
    }
    Program twice;
    twice.steps.resize(2);
    twice.steps[0].name = twice.steps[1].name = "same";
    EXPECT_EQ(step_titles(twice), (std::vector<std::string>{"same", "same (2)"}));
}

TEST(EngineProfileMemory, DoesNotGrowWithTheRuns) {
    const ops::Batch batch = ops::Batch::dense(1, 8);
    const Engine engine = profiled_engine({}, 1, 8);
    Context context(engine);
    ProfiledRun run(batch, {});
    Profile profile(100);
    context.profile_into(&profile);
    for (int i = 0; i < 20; ++i) run.run(context, batch);
    const int64_t bytes = profile.memory_bytes();
    for (int i = 0; i < 200; ++i) run.run(context, batch);
    EXPECT_EQ(profile.memory_bytes(), bytes);
    EXPECT_EQ(profile.rows()[0].calls, 220);
}

}  // namespace
}  // namespace stipple::engine
