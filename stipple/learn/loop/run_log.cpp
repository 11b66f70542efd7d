#include "stipple/learn/loop/run_log.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "stipple/core/folder.h"
#include "stipple/core/json_reader.h"
#include "stipple/core/json_writer.h"
#include "stipple/core/log.h"
#include "stipple/core/program_files.h"
#include "stipple/io/byte_source.h"
#include "stipple/io/image_file.h"

namespace stipple::learn {
namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// JSON has no NaN: null says that there is no number.
void put(JsonWriter& json, const std::string& name, double value) {
    json.key(name);
    if (std::isfinite(value))
        json.value(value);
    else
        json.value("not finite");
}

bool is_loss(const std::string& name) {
    return name.ends_with("loss");
}

}  // namespace

RunLog::RunLog(RunFolder& folder, std::string title, int64_t step) : folder_(folder) {
    curves_.title = std::move(title);
    curves_.score_label = "score";
    const std::string events = folder.path() + "/events";
    folder.rewind_metrics(step);
    ::mkdir(events.c_str(), 0777);
    std::string path = io::event_path(events, static_cast<int64_t>(now()));
    if (const auto found = io::find_event_file(events)) {
        path = *found;
        io::rewind_events(path, step);
    }
    events_ = std::make_unique<io::EventWriter>(path, now());
    read_history();
}

void RunLog::read_history() {
    const std::string path = folder_.path() + "/metrics.jsonl";
    if (!is_file(path)) return;
    io::FileSource source(path);
    io::ByteReader reader(source);
    while (const auto line = reader.line()) {
        std::string kind;
        int64_t epoch = 0;
        Scores scores;
        read_json("metrics.jsonl", *line, [&](JsonField& field) {
            const std::string key(field.word());
            if (key == "kind")
                field.take(kind);
            else if (key == "epoch")
                field.take(epoch);
            else if (is_loss(key) || key.ends_with("accuracy") || key.ends_with("miou"))
                field.take(scores.emplace_back(key, 0).second);
        });
        if (kind == "epoch") remember(epoch - 1, scores);
    }
}

void RunLog::remember(int64_t epoch, const Scores& scores) {
    last_scores_ = scores;
    for (const auto& [name, value] : scores) {
        std::vector<picture::TrainingCurve>& curves = is_loss(name) ? curves_.losses : curves_.scores;
        auto curve = std::find_if(curves.begin(), curves.end(), [&](const auto& c) { return c.name == name; });
        if (curve == curves.end()) curve = curves.insert(curve, picture::TrainingCurve{.name = name});
        curve->epochs.push_back(static_cast<double>(epoch + 1));
        curve->values.push_back(value);
    }
}

void RunLog::add_step(int64_t step, int64_t epoch, double loss, double rate, double gradient_norm) {
    JsonWriter json;
    json.begin_object().field("kind", "step").field("step", step).field("epoch", epoch + 1);
    put(json, "loss", loss);
    put(json, "rate", rate);
    put(json, "gradient_norm", gradient_norm);
    folder_.append_metrics(json.end_object().text());
    const io::EventScalar scalars[] = {{"step/loss", static_cast<float>(loss)},
                                       {"step/rate", static_cast<float>(rate)},
                                       {"step/gradient_norm", static_cast<float>(gradient_norm)}};
    events_->add_scalars(step, scalars, now());
}

void RunLog::add_skipped(int64_t step, int64_t epoch, const std::string& reason) {
    JsonWriter json;
    json.begin_object().field("kind", "skipped").field("step", step).field("epoch", epoch + 1);
    json.field("reason", std::string_view(reason));
    folder_.append_metrics(json.end_object().text());
}

void RunLog::add_epoch(int64_t step, int64_t epoch, const Scores& scores, double rate, double clouds_per_second,
                       const MemoryUse& memory) {
    JsonWriter json;
    json.begin_object().field("kind", "epoch").field("step", step).field("epoch", epoch + 1);
    std::vector<io::EventScalar> scalars;
    for (const auto& [name, value] : scores) {
        put(json, name, value);
        scalars.push_back({"epoch/" + name, static_cast<float>(value)});
    }
    put(json, "rate", rate);
    put(json, "clouds_per_second", clouds_per_second);
    json.field("host_bytes", memory.host_bytes).field("host_peak_bytes", memory.host_peak_bytes);
    json.field("device_bytes", memory.device_bytes).field("device_peak_bytes", memory.device_peak_bytes);
    json.field("pool_bytes", memory.pool_bytes);
    scalars.push_back({"epoch/clouds_per_second", static_cast<float>(clouds_per_second)});
    scalars.push_back({"memory/host_bytes", static_cast<float>(memory.host_bytes)});
    scalars.push_back({"memory/device_bytes", static_cast<float>(memory.device_bytes)});
    folder_.append_metrics(json.end_object().text());
    events_->add_scalars(step, scalars, now());
    remember(epoch, scores);
    draw();
}

void RunLog::draw() const {
    try {
        const picture::Chart chart = picture::training_chart(curves_, {});
        io::save_png(folder_.path() + "/curves.png", chart.image, Overwrite::allow);
    } catch (const Error& error) {  // a picture less is no reason to end a run
        log_warn("{}/curves.png: {}", folder_.path(), error.message());
    }
}

void RunLog::sync() {
    folder_.sync_metrics();
    events_->sync();
}

}  // namespace stipple::learn
