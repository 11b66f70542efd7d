#include "stipple/tasks/sampling_study/run_study.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/program_files.h"
#include "stipple/tasks/upsampling_study/run_study.h"

namespace stipple::tasks::study {
namespace {

bool is_same_row(const SamplingRow& a, const SamplingRow& b) {
    return a.sweep == b.sweep && a.task == b.task && a.network == b.network && a.method == b.method &&
           a.points == b.points && a.change.neighbours == b.change.neighbours && a.change.scale == b.change.scale;
}

std::vector<int64_t> sizes_of(const SamplingPlan& plan, SamplingTask task) {
    std::vector<int64_t> sizes = plan.sizes.empty() ? usual_sizes(task) : plan.sizes;
    std::sort(sizes.begin(), sizes.end());
    return sizes;
}

std::vector<const TaskNetworkName*> networks_of(const SamplingPlan& plan, SamplingTask task) {
    std::vector<const TaskNetworkName*> found;
    for (const TaskNetworkName& network : task_networks())
        if (network.task == task && plan.networks.contains(network.network)) found.push_back(&network);
    return found;
}

bool hands_over_soft_points(SamplingMethod method) {
    return method == SamplingMethod::snet || method == SamplingMethod::samplenet ||
           method == SamplingMethod::progressive;
}

std::string weights_checksum(const std::string& path) {
    const ModelOrEngine source = load_model_or_engine(path);
    if (!source.model) return path;
    // What a sampler does depends on its configuration too: neighbours, the floor of sigma.
    std::string text;
    for (const auto& [key, value] : source.model->network.config) text += fmt::format(" {}={}", key, value);
    return fmt::format("{:016x}{}", network::checksum(source.model->weights), text);
}

/// Rows that are there, and the file that keeps them.
class RowStore {
public:
    explicit RowStore(const SamplingPlan& plan) : path_(plan.folder + "/results.csv") {
        make_folders(plan.folder);
        if (!plan.again && is_file(path_)) rows_ = load_sampling_rows(path_);
    }
    /// Of the same inputs and weights; null for none.
    const SamplingRow* find(const SamplingRow& wanted) const {
        for (const SamplingRow& row : rows_)
            if (is_same_row(row, wanted) && row.key == wanted.key) return &row;
        return nullptr;
    }
    void add(const SamplingRow& row) {
        std::erase_if(rows_, [&](const SamplingRow& old) { return is_same_row(old, row); });
        rows_.push_back(row);
        write_text(path_, sampling_rows_to_csv(rows_));
    }

private:
    std::string path_;
    std::vector<SamplingRow> rows_;
};

/// One task and one of its networks.
class TaskStudy {
public:
    TaskStudy(const SamplingPlan& plan, const SamplingClouds& clouds, const TaskNetworkName& network, RowStore& store,
              SamplingResult& result)
        : plan_(plan),
          clouds_(clouds),
          network_(network),
          store_(store),
          result_(result),
          inputs_(fmt::format("{} seed={}", fingerprint(clouds), plan.inputs.seed)),
          judge_(plan.networks.at(network.network), set_of(plan, clouds.task), clouds, options()) {
        for (const int64_t size : sizes_of(plan, clouds.task))
            if (size <= clouds.n) sizes_.push_back(size);
    }

    void run() {
        run_method(SamplingMethod::all, {clouds_.n}, "");
        for (const SamplingMethod method : plan_.methods) {
            if (method == SamplingMethod::critical) {
                run_critical();
            } else if (!is_trained(method)) {
                run_method(method, sizes_, "");
            } else if (method == SamplingMethod::progressive) {
                const std::string name = sampler_name(method, clouds_.task, network_.network, 0);
                const std::string path = plan_.find_sampler(name);
                if (path.empty())
                    leave_out(method, {name});
                else
                    run_method(method, sizes_, path);
            } else {
                run_sizes(method);
            }
        }
        run_sweeps();
    }

private:
    RunnerOptions options() const {
        return {.device = plan_.device, .precision = {}, .batch = plan_.batch, .points = clouds_.n};
    }

    SamplingRow row_of(SamplingMethod method, int64_t points) const {
        SamplingRow row;
        row.task = clouds_.task;
        row.network = network_.network;
        row.method = method;
        row.points = points;
        row.clouds = clouds_.size();
        return row;
    }

    EqualClouds look(int i) const { return {clouds_.look(i).view(), clouds_.n}; }

    void leave_out(SamplingMethod method, const std::vector<std::string>& names) {
        result_.notes.push_back(fmt::format("left out, {} with the network {}, {}: no weights {}",
                                            title_of(clouds_.task), network_.network, title_of(method),
                                            fmt::join(names, ", ")));
    }

    /// The classifier's critical points; of the task's own network where that is one.
    void run_critical() {
        const bool is_own = clouds_.task == SamplingTask::classification;
        const auto classifier = plan_.networks.find(is_own ? network_.network : "robust");
        if (classifier == plan_.networks.end())
            leave_out(SamplingMethod::critical, {task_network(SamplingTask::classification, "robust").weights});
        else
            run_method(SamplingMethod::critical, sizes_, classifier->second);
    }

    void run_sizes(SamplingMethod method) {
        std::vector<std::string> missing;
        for (const int64_t size : sizes_) {
            const std::string name = sampler_name(method, clouds_.task, network_.network, size);
            const std::string path = plan_.find_sampler(name);
            if (path.empty())
                missing.push_back(name);
            else
                run_method(method, {size}, path);
        }
        if (!missing.empty()) leave_out(method, missing);
    }

    /// Rows of a method whose sampler serves all of these sizes, ascending.
    void run_method(SamplingMethod method, const std::vector<int64_t>& sizes, const std::string& weights);
    void score_soft(SoftSampler& sampler, SamplingRow& row) {
        std::vector<Array<float, 2>> few;
        for (int i = 0; i < clouds_.looks(); ++i) few.push_back(sampler.project(look(i), row.points, row.change));
        row.soft = judge_.score(few, row.points);
        if (sampler.neighbours() > 0) row.sigma = row.change.scale * row.change.scale * sampler.sigma();
    }
    void run_sweeps();
    void finish(const SamplingRow& row) {
        result_.rows.push_back(row);
        if (plan_.advance) plan_.advance(1);
    }
    void tell(const SamplingRow& row) const {
        if (!plan_.report) return;
        const double hard = main_score(row.hard, row.task), soft = main_score(row.soft, row.task);
        plan_.report(fmt::format("{} {} {} {}: {:.4g}{}", name_of(row.task), row.network, name_of(row.method),
                                 row.points, std::isnan(hard) ? soft : hard,
                                 std::isnan(soft) || std::isnan(hard) ? "" : fmt::format(", soft {:.4g}", soft)));
    }

    const SamplingPlan& plan_;
    const SamplingClouds& clouds_;
    const TaskNetworkName& network_;
    RowStore& store_;
    SamplingResult& result_;
    std::string inputs_;
    TaskJudge judge_;
    std::vector<int64_t> sizes_;
};

void TaskStudy::run_method(SamplingMethod method, const std::vector<int64_t>& sizes, const std::string& weights) {
    const std::string key =
        fmt::format("{} {} {}", inputs_, judge_.checksum(), weights.empty() ? "-" : weights_checksum(weights));
    std::vector<SamplingRow> rows;
    int64_t most = 0;  // points of the largest sample that is not stored
    for (const int64_t size : sizes) {
        SamplingRow& row = rows.emplace_back(row_of(method, size));
        row.key = key;
        if (!store_.find(row)) most = size;
    }
    std::vector<Array<int32_t, 2>> chosen;  // for each look
    std::optional<StudySampler> sampler;
    std::optional<SoftSampler> soft;
    for (SamplingRow& row : rows) {
        check_interrupted();
        if (const SamplingRow* stored = store_.find(row)) {
            finish(*stored);
            continue;
        }
        if (!sampler) {
            sampler.emplace(method, weights, method == SamplingMethod::progressive ? 0 : row.points, options());
            if (hands_over_soft_points(method)) soft.emplace(weights, options());
        }
        if (chosen.empty() || !has_prefixes(method)) {
            chosen.clear();
            for (int i = 0; i < clouds_.looks(); ++i)  // two looks at a shape are sampled each by its own numbers
                chosen.push_back(sampler->choose(look(i), has_prefixes(method) ? most : row.points,
                                                 2 * plan_.inputs.seed + static_cast<uint64_t>(i)));
        }
        std::vector<Array<float, 2>> few;
        for (int i = 0; i < clouds_.looks(); ++i)
            few.push_back(points_at(look(i), chosen[static_cast<size_t>(i)], row.points));
        row.hard = judge_.score(few, row.points);
        if (soft && row.points <= soft->count() && soft->neighbours() <= clouds_.n) score_soft(*soft, row);
        store_.add(row);
        tell(row);
        finish(row);
    }
}

void TaskStudy::run_sweeps() {
    const std::vector<SamplingMethod>& methods = plan_.methods;
    if (std::find(methods.begin(), methods.end(), SamplingMethod::samplenet) == methods.end()) return;
    std::vector<int64_t> sizes = sizes_;  // the usual one first
    std::stable_partition(sizes.begin(), sizes.end(), [](int64_t size) { return size == kSweptSize; });
    std::string path;
    int64_t size = 0;
    for (size_t i = 0; i < sizes.size() && path.empty(); ++i) {
        size = sizes[i];
        path = plan_.find_sampler(sampler_name(SamplingMethod::samplenet, clouds_.task, network_.network, size));
    }
    if (path.empty()) return;
    std::vector<SamplingRow> rows;
    const auto add = [&](SamplingSweep sweep, const SoftChange& change) {
        SamplingRow& row = rows.emplace_back(row_of(SamplingMethod::samplenet, size));
        row.sweep = sweep;
        row.change = change;
        row.key = fmt::format("{} {} {}", inputs_, judge_.checksum(), weights_checksum(path));
    };
    for (const int64_t k : kSweptNeighbours)
        if (k <= clouds_.n) add(SamplingSweep::neighbours, {.neighbours = k});
    for (const double scale : kSweptScales) add(SamplingSweep::temperature, {.scale = scale});
    std::optional<SoftSampler> soft;
    for (SamplingRow& row : rows) {
        check_interrupted();
        if (const SamplingRow* stored = store_.find(row)) {
            finish(*stored);
            continue;
        }
        if (!soft) soft.emplace(path, options());
        if (row.change.neighbours == 0 && soft->neighbours() > clouds_.n) continue;
        score_soft(*soft, row);
        store_.add(row);
        finish(row);
    }
}

}  // namespace

const data::DataSet& set_of(const SamplingPlan& plan, SamplingTask task) {
    return task == SamplingTask::reconstruction && plan.reconstruction_set ? *plan.reconstruction_set : *plan.set;
}

std::vector<int64_t> usual_sizes(SamplingTask task) {
    if (task == SamplingTask::registration) return {16, 32, 64, 128};
    return {8, 16, 32, 64, 128, 256, 512};
}

int64_t sampling_rows(const SamplingPlan& plan) {
    int64_t rows = 0;
    for (const SamplingTask task : plan.tasks)
        for (const TaskNetworkName* network : networks_of(plan, task)) {
            const std::vector<int64_t> sizes = sizes_of(plan, task);
            const auto all = static_cast<int64_t>(sizes.size());
            const auto is_there = [&](SamplingMethod method, int64_t size) {
                return !plan.find_sampler(sampler_name(method, task, network->network, size)).empty();
            };
            rows += 1;  // of all points
            for (const SamplingMethod method : plan.methods) {
                if (!is_trained(method)) {
                    const bool has_weights = method != SamplingMethod::critical ||
                                             task == SamplingTask::classification || plan.networks.contains("robust");
                    rows += has_weights ? all : 0;
                } else if (method == SamplingMethod::progressive) {
                    rows += is_there(method, 0) ? all : 0;
                } else {
                    const int64_t found =
                        std::count_if(sizes.begin(), sizes.end(), [&](int64_t size) { return is_there(method, size); });
                    const auto swept = static_cast<int64_t>(std::size(kSweptNeighbours) + std::size(kSweptScales));
                    rows += found + (method == SamplingMethod::samplenet && found > 0 ? swept : 0);
                }
            }
        }
    return rows;
}

std::vector<WantedSampler> wanted_samplers(const SamplingPlan& plan) {
    std::vector<WantedSampler> wanted;
    for (const SamplingTask task : plan.tasks)
        for (const TaskNetworkName* network : networks_of(plan, task))
            for (const SamplingMethod method : plan.methods) {
                if (!is_trained(method)) continue;
                const bool is_progressive = method == SamplingMethod::progressive;
                for (const int64_t size : is_progressive ? std::vector<int64_t>{0} : sizes_of(plan, task))
                    wanted.push_back(
                        {sampler_name(method, task, network->network, size), method, task, network->network, size});
            }
    return wanted;
}

SamplingResult run_sampling_study(const SamplingPlan& plan) {
    SamplingResult result;
    RowStore store(plan);
    for (const SamplingTask task : plan.tasks) {
        for (const TaskNetworkName& network : task_networks())
            if (network.task == task && !plan.networks.contains(network.network))
                result.notes.push_back(fmt::format("left out, {} with the network {}: no weights {}", title_of(task),
                                                   network.network, network.weights));
        const std::vector<const TaskNetworkName*> networks = networks_of(plan, task);
        if (networks.empty()) continue;
        const SamplingClouds clouds = sampling_clouds(set_of(plan, task), task, plan.inputs);
        if (clouds.is_short)
            result.notes.push_back(fmt::format("{}: clouds of {} points, where the protocol has {}", title_of(task),
                                               clouds.n, points_of(task)));
        for (const TaskNetworkName* network : networks) TaskStudy(plan, clouds, *network, store, result).run();
    }
    return result;
}

}  // namespace stipple::tasks::study
