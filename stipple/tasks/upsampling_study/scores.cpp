#include "stipple/tasks/upsampling_study/scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "stipple/core/atomic_file.h"
#include "stipple/core/program_files.h"
#include "stipple/metrics/evaluate.h"
#include "stipple/tasks/upsampling_study/csv.h"

namespace stipple::tasks::study {
namespace {

constexpr size_t kP2f = 4;

Scores no_scores() {
    Scores scores;
    scores.fill(NAN);
    return scores;
}

int64_t whole_number(const std::string& text) {
    const double value = csv_number(text);
    if (!(std::abs(value) < 9e15) || value != std::floor(value))
        throw Error(ErrorCode::bad_file, fmt::format("\"{}\" is no whole number", text));
    return static_cast<int64_t>(value);
}

/// The mean over the shapes of one seed.
Scores over_shapes(const std::vector<const Row*>& rows) {
    Scores mean = {};
    for (size_t s = 0; s < kScoreCount; ++s) {
        double sum = 0, weights = 0;
        for (const Row* row : rows) {
            const double weight = s == kP2f ? static_cast<double>(row->points) : 1;
            sum += weight * row->scores[s], weights += weight;
        }
        mean[s] = sum / weights;
    }
    return mean;
}

void set_mean_and_deviation(Mean& mean, const std::vector<Scores>& seeds) {
    const auto n = static_cast<double>(seeds.size());
    for (size_t s = 0; s < kScoreCount; ++s) {
        double sum = 0, squares = 0;
        for (const Scores& seed : seeds) sum += seed[s];
        mean.mean[s] = sum / n;
        for (const Scores& seed : seeds) squares += (seed[s] - mean.mean[s]) * (seed[s] - mean.mean[s]);
        mean.deviation[s] = n < 2 ? NAN : std::sqrt(squares / (n - 1));
    }
}

}  // namespace

Scores score(const PointCloud& output, const PointCloud& truth, const Mesh& mesh, Device device) {
    metrics::EvaluateOptions options;
    options.extras = {metrics::Extra::uniformity, metrics::Extra::nuc};
    options.seed = 0;
    options.device = device;
    const metrics::Evaluation found = metrics::evaluate(output, truth, &mesh, metrics::Protocol::pu_gan, options);
    Scores scores = no_scores();
    for (size_t s = 0; s < kScoreCount; ++s)
        if (const metrics::Score* one = metrics::find(found.scores, kScores[s].name)) scores[s] = one->value;
    return scores;
}

std::string rows_to_csv(const std::vector<Row>& rows) {
    Csv table{{"input", "shape", "method", "seed", "key", "points", "seconds"}, {}};
    for (const ScoreInfo& info : kScores) table.columns.emplace_back(info.name);
    for (const Row& row : rows) {
        table.rows.push_back({row.input, row.shape, row.method, std::to_string(row.seed), row.key,
                              std::to_string(row.points), csv_text(row.seconds)});
        for (const double value : row.scores) table.rows.back().push_back(csv_text(value));
    }
    return to_csv(table);
}

std::vector<Row> load_rows(const std::string& path) {
    const Csv table = load_csv(path);
    try {
        std::vector<Row> rows;
        const auto cell = [&](const std::vector<std::string>& cells, const char* name) -> const std::string& {
            return cells[table.column(name)];
        };
        for (const std::vector<std::string>& cells : table.rows) {
            Row row{.input = cell(cells, "input"),
                    .shape = cell(cells, "shape"),
                    .method = cell(cells, "method"),
                    .seed = static_cast<uint64_t>(whole_number(cell(cells, "seed"))),
                    .key = cell(cells, "key"),
                    .points = whole_number(cell(cells, "points")),
                    .seconds = csv_number(cell(cells, "seconds"))};
            for (size_t s = 0; s < kScoreCount; ++s) row.scores[s] = csv_number(cell(cells, kScores[s].name));
            rows.push_back(std::move(row));
        }
        return rows;
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

std::vector<Mean> means_of(const std::vector<Row>& rows) {
    std::vector<Mean> means;
    std::map<std::pair<std::string, std::string>, size_t> place;
    std::vector<std::map<uint64_t, std::vector<const Row*>>> by_seed;
    for (const Row& row : rows) {
        const auto [at, is_new] = place.emplace(std::pair(row.input, row.method), means.size());
        if (is_new) {
            means.push_back({.input = row.input, .method = row.method});
            by_seed.emplace_back();
        }
        by_seed[at->second][row.seed].push_back(&row);
    }
    for (size_t i = 0; i < means.size(); ++i) {
        Mean& mean = means[i];
        std::vector<Scores> seeds;
        std::set<std::string> shapes;
        double seconds = 0, outputs = 0;
        for (const auto& [seed, of_shapes] : by_seed[i]) {
            seeds.push_back(over_shapes(of_shapes));
            for (const Row* row : of_shapes) shapes.insert(row->shape), seconds += row->seconds, outputs += 1;
        }
        set_mean_and_deviation(mean, seeds);
        mean.seconds = seconds / outputs;
        mean.shapes = static_cast<int64_t>(shapes.size()), mean.seeds = static_cast<int64_t>(seeds.size());
    }
    return means;
}

std::vector<Mean> load_stored(const std::string& path) {
    const Csv table = load_csv(path);
    try {
        const size_t input = table.column("input"), method = table.column("method"), commit = table.column("commit"),
                     command = table.column("command");
        std::vector<Mean> means;
        for (const std::vector<std::string>& cells : table.rows) {
            Mean mean{.input = cells[input], .method = cells[method], .source = "stored"};
            mean.mean = mean.deviation = no_scores();
            mean.seconds = NAN;
            mean.commit = cells[commit], mean.command = cells[command];
            for (size_t c = 0; c < table.columns.size(); ++c) {
                for (size_t s = 0; s < kScoreCount; ++s)
                    if (table.columns[c] == kScores[s].name) mean.mean[s] = csv_number(cells[c]);
                if (table.columns[c] == "seeds" && !cells[c].empty()) mean.seeds = whole_number(cells[c]);
                if (table.columns[c] == "shapes" && !cells[c].empty()) mean.shapes = whole_number(cells[c]);
            }
            means.push_back(std::move(mean));
        }
        return means;
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

void store_means(const std::string& path, const std::vector<Mean>& means) {
    Csv table;
    if (is_file(path)) table = load_csv(path);
    const auto column = [&](const std::string& name) {
        const auto found = std::find(table.columns.begin(), table.columns.end(), name);
        if (found != table.columns.end()) return static_cast<size_t>(found - table.columns.begin());
        table.columns.push_back(name);
        for (std::vector<std::string>& row : table.rows) row.emplace_back();
        return table.columns.size() - 1;
    };
    const size_t input = column("input"), method = column("method");
    for (const Mean& mean : means) {
        std::map<size_t, std::string> cells = {{input, mean.input}, {method, mean.method}};
        for (size_t s = 0; s < kScoreCount; ++s) cells[column(kScores[s].name)] = csv_text(mean.mean[s]);
        cells[column("seeds")] = std::to_string(mean.seeds);
        cells[column("shapes")] = std::to_string(mean.shapes);
        cells[column("commit")] = mean.commit;
        cells[column("command")] = mean.command;
        auto row = std::find_if(table.rows.begin(), table.rows.end(), [&](const std::vector<std::string>& one) {
            return one[input] == mean.input && one[method] == mean.method;
        });
        if (row == table.rows.end()) row = table.rows.emplace(row, table.columns.size());
        for (auto& [at, text] : cells) (*row)[at] = std::move(text);
    }
    AtomicFile file(path, Overwrite::allow);
    file.write(to_csv(table));
    file.commit();
}

}  // namespace stipple::tasks::study
