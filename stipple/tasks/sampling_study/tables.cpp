#include "stipple/tasks/sampling_study/tables.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace stipple::tasks::study {
namespace {

constexpr const char* kAboutSoft =
    "Sampled: points of the cloud. Soft: what SampleNet's network hands to the task while it is trained, softly "
    "projected points, and S-NET's points before they are matched; nobody's sensor has measured these.";

/// The methods that have rows, `all` first.
std::vector<SamplingMethod> methods_with_rows(const std::vector<SamplingRow>& rows, SamplingTask task) {
    std::vector<SamplingMethod> methods = {SamplingMethod::all};
    methods.insert(methods.end(), sampling_methods().begin(), sampling_methods().end());
    std::erase_if(methods, [&](SamplingMethod method) {
        return std::none_of(rows.begin(), rows.end(), [&](const SamplingRow& row) {
            return row.sweep == SamplingSweep::size && row.task == task && row.method == method;
        });
    });
    return methods;
}

/// Sizes of a method, of any network.
std::vector<int64_t> sizes_with_rows(const std::vector<SamplingRow>& rows, SamplingTask task, SamplingMethod method) {
    std::vector<int64_t> sizes;
    for (const SamplingRow& row : rows)
        if (row.sweep == SamplingSweep::size && row.task == task && row.method == method) sizes.push_back(row.points);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

const SamplingRow* row_at(const std::vector<SamplingRow>& rows, SamplingTask task, const std::string& network,
                          SamplingMethod method, int64_t points) {
    for (const SamplingRow& row : rows)
        if (row.sweep == SamplingSweep::size && row.task == task && row.network == network && row.method == method &&
            row.points == points)
            return &row;
    return nullptr;
}

Cell percent(double share) {
    return {100 * share, 1, 100};
}

void begin_rows(ReportTable& table, const std::vector<SamplingRow>& rows, SamplingTask task,
                const std::function<std::vector<Cell>(SamplingMethod method, int64_t points)>& cells) {
    for (const SamplingMethod method : methods_with_rows(rows, task)) {
        table.groups.push_back(table.rows.size());
        for (const int64_t points : sizes_with_rows(rows, task, method)) {
            std::vector<Cell>& row = table.rows.emplace_back();
            row = {title_of(method), {static_cast<double>(points), 0}};
            for (Cell& cell : cells(method, points)) row.push_back(std::move(cell));
        }
    }
}

/// Without numbers that no row has, as soft points where no learned sampler was there.
ReportTable without_empty_columns(ReportTable table) {
    for (size_t c = table.columns.size(); c-- > 0;) {
        if (!table.columns[c].is_number) continue;
        if (!std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return row[c].text.empty(); }))
            continue;
        const auto at = static_cast<std::ptrdiff_t>(c);
        table.columns.erase(table.columns.begin() + at);
        for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + at);
    }
    return table;
}

ReportTable classification_table(const std::vector<SamplingRow>& rows) {
    const SamplingTask task = SamplingTask::classification;
    const std::vector<std::string> networks = networks_with_rows(rows, task);
    ReportTable table;
    table.caption = std::string(
                        "Classification: overall accuracy by the number of points. Plain: the task network has "
                        "seen full clouds alone while it was trained; robust: also thinned ones. ") +
                    kAboutSoft;
    table.columns = {{"method"}, {"points", "", true}};
    for (const std::string& network : networks) {
        table.columns.push_back({network + ", sampled (%)", network + "_hard_accuracy", true});
        table.columns.push_back({network + ", soft (%)", network + "_soft_accuracy", true});
    }
    for (const std::string& network : networks) {
        table.columns.push_back(
            {network + ", sampled, mean of classes (%)", network + "_hard_class_accuracy", true, false});
        table.columns.push_back(
            {network + ", soft, mean of classes (%)", network + "_soft_class_accuracy", true, false});
        table.columns.push_back({network + ", clouds", network + "_clouds", true, false});
    }
    begin_rows(table, rows, task, [&](SamplingMethod method, int64_t points) {
        std::vector<Cell> cells;
        for (const std::string& network : networks) {
            const SamplingRow* row = row_at(rows, task, network, method, points);
            cells.push_back(percent(row ? row->hard.accuracy : NAN));
            cells.push_back(percent(row ? row->soft.accuracy : NAN));
        }
        for (const std::string& network : networks) {
            const SamplingRow* row = row_at(rows, task, network, method, points);
            cells.push_back(percent(row ? row->hard.class_accuracy : NAN));
            cells.push_back(percent(row ? row->soft.class_accuracy : NAN));
            cells.push_back({row ? static_cast<double>(row->clouds) : NAN, 0});
        }
        return cells;
    });
    return table;
}

ReportTable registration_table(const std::vector<SamplingRow>& rows) {
    const SamplingTask task = SamplingTask::registration;
    ReportTable table;
    table.caption = std::string(
                        "Registration: the angle between the rotation that PCRNet finds and the true one. "
                        "Doubled: the mean as SampleNet's program prints it, twice the angle. Consistency: "
                        "chamfer distance, squared, both ways, between the sampled source and the sampled "
                        "template turned back. ") +
                    kAboutSoft;
    table.columns = {{"method"},
                     {"points", "", true},
                     {"mean (deg)", "hard_rotation", true},
                     {"median (deg)", "hard_rotation_median", true},
                     {"below 5 deg (%)", "hard_below_5", true},
                     {"doubled mean (deg)", "hard_rotation_doubled", true},
                     {"consistency (1e-3)", "hard_consistency", true},
                     {"soft mean (deg)", "soft_rotation", true},
                     {"soft consistency (1e-3)", "soft_consistency", true},
                     {"soft median (deg)", "soft_rotation_median", true, false},
                     {"soft below 5 deg (%)", "soft_below_5", true, false},
                     {"pairs", "", true, false}};
    const std::vector<std::string> networks = networks_with_rows(rows, task);
    begin_rows(table, rows, task, [&](SamplingMethod method, int64_t points) -> std::vector<Cell> {
        const SamplingRow& row = *row_at(rows, task, networks[0], method, points);
        return {{row.hard.rotation, 2},
                {row.hard.rotation_median, 2},
                percent(row.hard.below_5),
                {row.hard.rotation_doubled, 2},
                {1e3 * row.hard.consistency, 3, 1e3},
                {row.soft.rotation, 2},
                {1e3 * row.soft.consistency, 3, 1e3},
                {row.soft.rotation_median, 2},
                percent(row.soft.below_5),
                {static_cast<double>(row.clouds), 0}};
    });
    return table;
}

ReportTable reconstruction_table(const std::vector<SamplingRow>& rows) {
    const SamplingTask task = SamplingTask::reconstruction;
    ReportTable table;
    table.caption = std::string(
                        "Reconstruction: NRE, the mean over clouds of the error of what the autoencoder makes "
                        "of a sample over that of what it makes of the whole cloud; errors are chamfer "
                        "distances, squared, both ways. ") +
                    kAboutSoft;
    table.columns = {{"method"},
                     {"points", "", true},
                     {"NRE, sampled", "hard_nre", true},
                     {"NRE, soft", "soft_nre", true},
                     {"chamfer, sampled (1e-3)", "hard_chamfer", true},
                     {"chamfer, soft (1e-3)", "soft_chamfer", true},
                     {"clouds", "", true, false}};
    const std::vector<std::string> networks = networks_with_rows(rows, task);
    begin_rows(table, rows, task, [&](SamplingMethod method, int64_t points) -> std::vector<Cell> {
        const SamplingRow& row = *row_at(rows, task, networks[0], method, points);
        return {{row.hard.nre, 2},
                {row.soft.nre, 2},
                {1e3 * row.hard.chamfer, 3, 1e3},
                {1e3 * row.soft.chamfer, 3, 1e3},
                {static_cast<double>(row.clouds), 0}};
    });
    return table;
}

/// What a summary has of a row: "86.5 (87.1)", "4.55 / 3.43 / 72 %".
std::string summary_text(const SamplingRow& row) {
    const auto with_soft = [](const std::string& text, double soft, double scale, int digits) {
        return std::isnan(soft) ? text : fmt::format("{} ({:.{}f})", text, scale * soft, digits);
    };
    switch (row.task) {
        case SamplingTask::classification:
            return with_soft(fmt::format("{:.1f}", 100 * row.hard.accuracy), row.soft.accuracy, 100, 1);
        case SamplingTask::registration:
            return with_soft(fmt::format("{:.2f} / {:.2f} / {:.0f} %", row.hard.rotation, row.hard.rotation_median,
                                         100 * row.hard.below_5),
                             row.soft.rotation, 1, 2);
        case SamplingTask::reconstruction: return with_soft(fmt::format("{:.2f}", row.hard.nre), row.soft.nre, 1, 2);
    }
    STIPPLE_ASSERT(false);
}

std::string summary_caption(SamplingTask task, const std::string& network) {
    switch (task) {
        case SamplingTask::classification:
            return fmt::format("Classification, {} task network: overall accuracy in %, soft points in brackets",
                               network);
        case SamplingTask::registration:
            return "Registration: angle in degrees, mean / median / share below 5; in brackets the mean of soft points";
        case SamplingTask::reconstruction: return "Reconstruction: NRE, soft points in brackets";
    }
    STIPPLE_ASSERT(false);
}

ReportTable sweep_table(const std::vector<SamplingRow>& rows, SamplingSweep sweep) {
    const bool is_k = sweep == SamplingSweep::neighbours;
    ReportTable table;
    table.caption = is_k ? "Neighbours of the soft projection, changed after training: scores of soft points. Sampled "
                           "points do not depend on it."
                         : "Temperature of the soft projection, scaled after training: scores of soft points. 0 is the "
                           "nearest point, of which several of a sample may be the same.";
    table.columns = {{"task"},
                     {"network"},
                     {"points", "", true},
                     {is_k ? "neighbours" : "temperature (of the trained)", is_k ? "neighbours" : "temperature", true},
                     {"sigma (1e-3)", "sigma", true},
                     {"accuracy (%)", "soft_accuracy", true},
                     {"rotation (deg)", "soft_rotation", true},
                     {"NRE", "soft_nre", true}};
    std::string last;
    for (const SamplingRow& row : rows) {
        if (row.sweep != sweep) continue;
        const std::string group = fmt::format("{} {}", name_of(row.task), row.network);
        if (group != last) table.groups.push_back(table.rows.size());
        last = group;
        table.rows.push_back({title_of(row.task),
                              row.network,
                              {static_cast<double>(row.points), 0},
                              is_k ? Cell(static_cast<double>(row.change.neighbours), 0) : Cell(row.change.scale, 2),
                              {1e3 * row.sigma, 3, 1e3},
                              percent(row.soft.accuracy),
                              {row.soft.rotation, 2},
                              {row.soft.nre, 3}});
    }
    return table;
}

PointCloud cloud_of(View<const float, 2> rows) {
    PointCloud cloud(rows.size(0));
    for (int64_t i = 0; i < rows.size(0); ++i)
        for (int axis = 0; axis < 3; ++axis) cloud.positions.view()(i, axis) = rows(i, axis);
    return cloud;
}

/// So many clouds, of different classes as far as there are.
void keep_different(SamplingClouds& clouds, int64_t count) {
    std::vector<int64_t> kept, rest;
    std::set<int32_t> classes;
    for (int64_t c = 0; c < clouds.size(); ++c)
        (classes.insert(clouds.labels[static_cast<size_t>(c)]).second ? kept : rest).push_back(c);
    kept.insert(kept.end(), rest.begin(), rest.end());
    if (clouds.size() <= count) return;
    kept.resize(static_cast<size_t>(count));
    SamplingClouds few;
    few.task = clouds.task;
    few.n = clouds.n;
    few.classes = clouds.classes;
    few.points = Array<float, 2>({count * clouds.n, 3});
    for (const int64_t c : kept) {
        std::copy_n(clouds.points.data() + 3 * c * clouds.n, 3 * clouds.n,
                    few.points.data() + 3 * few.size() * clouds.n);
        few.items.push_back(clouds.items[static_cast<size_t>(c)]);
        few.labels.push_back(clouds.labels[static_cast<size_t>(c)]);
    }
    clouds = std::move(few);
}

/// Weights of a method for pictures; "" where it needs none, nothing where there are none.
std::optional<std::string> picture_weights(const SamplingPlan& plan, SamplingMethod method, SamplingTask task,
                                           const TaskNetworkName& network, int64_t m) {
    std::string path;
    if (method == SamplingMethod::critical) {
        const auto found = plan.networks.find(task == SamplingTask::classification ? network.network : "robust");
        if (found != plan.networks.end()) path = found->second;
    } else if (is_trained(method)) {
        path = plan.find_sampler(sampler_name(method, task, network.network, m));
    } else {
        return "";
    }
    if (path.empty()) return {};
    return path;
}

}  // namespace

std::vector<const SamplingRow*> rows_of(const std::vector<SamplingRow>& rows, SamplingSweep sweep, SamplingTask task,
                                        const std::string& network, SamplingMethod method) {
    std::vector<const SamplingRow*> found;
    for (const SamplingRow& row : rows)
        if (row.sweep == sweep && row.task == task && row.network == network && row.method == method)
            found.push_back(&row);
    return found;
}

std::vector<std::string> networks_with_rows(const std::vector<SamplingRow>& rows, SamplingTask task) {
    std::vector<std::string> networks;
    for (const TaskNetworkName& network : task_networks())
        if (network.task == task && std::any_of(rows.begin(), rows.end(), [&](const SamplingRow& row) {
                return row.task == task && row.network == network.network;
            }))
            networks.emplace_back(network.network);
    return networks;
}

std::vector<ReportTable> sampling_summaries(const std::vector<SamplingRow>& rows) {
    std::vector<ReportTable> tables;
    for (const SamplingTask task : sampling_tasks())
        for (const std::string& network : networks_with_rows(rows, task)) {
            std::set<int64_t, std::greater<>> sizes;
            for (const SamplingRow& row : rows)
                if (row.sweep == SamplingSweep::size && row.task == task) sizes.insert(row.points);
            ReportTable& table = tables.emplace_back();
            table.caption = summary_caption(task, network);
            table.columns = {{"method"}};
            for (const int64_t size : sizes) table.columns.push_back({fmt::format("m = {}", size), "", true});
            for (const SamplingMethod method : methods_with_rows(rows, task)) {
                std::vector<Cell> cells = {title_of(method)};
                for (const int64_t size : sizes) {
                    const SamplingRow* row = row_at(rows, task, network, method, size);
                    cells.emplace_back(row ? summary_text(*row) : "");
                }
                const bool has_any =
                    std::any_of(cells.begin() + 1, cells.end(), [](const Cell& cell) { return !cell.text.empty(); });
                if (has_any) table.rows.push_back(std::move(cells));
            }
        }
    return tables;
}

std::vector<SamplingTable> sampling_tables(const std::vector<SamplingRow>& rows) {
    std::vector<SamplingTable> tables;
    for (const SamplingTask task : sampling_tasks()) {
        if (networks_with_rows(rows, task).empty()) continue;
        switch (task) {
            case SamplingTask::classification: tables.push_back({title_of(task), classification_table(rows)}); break;
            case SamplingTask::registration: tables.push_back({title_of(task), registration_table(rows)}); break;
            case SamplingTask::reconstruction: tables.push_back({title_of(task), reconstruction_table(rows)}); break;
        }
    }
    for (SamplingTable& table : tables) table.table = without_empty_columns(std::move(table.table));
    for (const SamplingSweep sweep : {SamplingSweep::neighbours, SamplingSweep::temperature})
        if (ReportTable table = sweep_table(rows, sweep); !table.rows.empty())
            tables.push_back({name_of(sweep), without_empty_columns(std::move(table))});
    return tables;
}

ReportTable results_table(const std::vector<SamplingRow>& rows) {
    ReportTable table;
    table.columns = {{"sweep"},
                     {"task"},
                     {"network"},
                     {"method"},
                     {"points", "", true},
                     {"neighbours", "", true},
                     {"temperature", "", true},
                     {"sigma", "", true},
                     {"clouds", "", true}};
    for (const char* kind : {"hard_", "soft_"})
        for (const SamplingScoreColumn& column : sampling_score_columns())
            table.columns.push_back({std::string(kind) + column.name, "", true});
    for (const SamplingRow& row : rows) {
        std::vector<Cell>& cells = table.rows.emplace_back();
        cells = {name_of(row.sweep),
                 name_of(row.task),
                 row.network,
                 name_of(row.method),
                 {static_cast<double>(row.points), 0},
                 row.change.neighbours > 0 ? Cell(static_cast<double>(row.change.neighbours), 0) : Cell(),
                 {row.change.scale, 2},
                 {row.sigma, 6},
                 {static_cast<double>(row.clouds), 0}};
        for (const SamplingScores* scores : {&row.hard, &row.soft})
            for (const SamplingScoreColumn& column : sampling_score_columns())
                cells.push_back({scores->*column.member, 4});
    }
    return table;
}

std::vector<SamplePicture> sample_pictures(const SamplingPlan& plan, SamplingTask task, int64_t m, int64_t shapes) {
    const TaskNetworkName* network = nullptr;
    for (const TaskNetworkName& entry : task_networks())
        if (entry.task == task && plan.networks.contains(entry.network)) network = &entry;
    if (!network) return {};
    SamplingInputs inputs = plan.inputs;
    inputs.clouds = 8 * shapes;  // some of them of different classes
    inputs.turns = 1;
    SamplingClouds clouds = sampling_clouds(set_of(plan, task), task, inputs);
    keep_different(clouds, shapes);
    const EqualClouds equal{clouds.points.view(), clouds.n};
    const int64_t count = std::min(m, clouds.n);
    std::vector<std::vector<SamplePicture>> of_shape(static_cast<size_t>(clouds.size()));
    for (const SamplingMethod method : plan.methods) {
        const std::optional<std::string> weights = picture_weights(plan, method, task, *network, count);
        if (!weights) continue;
        StudySampler sampler(method, *weights, method == SamplingMethod::progressive ? 0 : count,
                             {.device = plan.device, .precision = {}, .batch = plan.batch, .points = clouds.n});
        const Array<int32_t, 2> chosen = sampler.choose(equal, count, plan.inputs.seed);
        const Array<float, 2> few = points_at(equal, chosen, count);
        for (int64_t c = 0; c < clouds.size(); ++c)
            of_shape[static_cast<size_t>(c)].push_back(
                {clouds.classes[static_cast<size_t>(clouds.labels[static_cast<size_t>(c)])], title_of(method),
                 cloud_of(equal.part(c, c + 1)), cloud_of(few.view().slice(c * count, (c + 1) * count))});
    }
    std::vector<SamplePicture> pictures;
    for (std::vector<SamplePicture>& one : of_shape)
        for (SamplePicture& picture : one) pictures.push_back(std::move(picture));
    return pictures;
}

}  // namespace stipple::tasks::study
