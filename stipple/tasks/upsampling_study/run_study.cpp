#include "stipple/tasks/upsampling_study/run_study.h"

#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include "stipple/core/atomic_file.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/program_files.h"
#include "stipple/io/format.h"

namespace stipple::tasks::study {
namespace {

using RowKey = std::tuple<std::string, std::string, std::string, uint64_t>;  // input, shape, method, seed

RowKey key_of(const Row& row) {
    return {row.input, row.shape, row.method, row.seed};
}

void save_cloud(const std::string& path, const PointCloud& cloud) {
    make_folders(path.substr(0, path.rfind('/')));
    Mesh mesh;
    mesh.vertices = cloud.clone();
    io::Warnings ignored;
    io::save(path, mesh, Overwrite::allow, {}, ignored);
}

std::optional<PointCloud> load_given(const Shape& shape) {
    if (shape.truth.empty()) return {};
    io::Warnings ignored;
    return io::load_cloud(shape.truth, {}, ignored);
}

/// One input and what the methods make of it.
class InputWork {
public:
    InputWork(const StudyPlan& plan, const Condition& condition, const Shape& shape, size_t shape_at, uint64_t seed,
              const Mesh& mesh, const PointCloud* given)
        : plan_(plan),
          condition_(condition),
          shape_(shape),
          seed_(seed),
          mesh_(mesh),
          given_(given),
          input_(draw_input(mesh, given, condition, seed)),
          is_shown_(static_cast<int64_t>(shape_at) < plan.figure_shapes && seed == plan.first_seed) {}

    void save_input() const { save_cloud(input_path(plan_, condition_, shape_, seed_), input_); }

    /// A row for each method that runs; `kept` are those of before.
    std::vector<Row> rows(MethodRunner& runner, const std::map<RowKey, Row>& kept) {
        std::vector<Row> rows;
        const std::string drawn = fingerprint(input_);
        for (const Method& method : plan_.methods) {
            if (!runner.runs(method, condition_)) continue;
            check_interrupted();
            Row row{.input = condition_.id, .shape = shape_.name, .method = method.name, .seed = seed_};
            row.key = drawn + "-" + runner.fingerprint_of(method, condition_, shape_, seed_);
            const auto before = kept.find(key_of(row));
            const std::string output = output_path(plan_, method.name, condition_, shape_, seed_);
            if (before != kept.end() && before->second.key == row.key && (!is_shown_ || is_file(output))) {
                rows.push_back(before->second);
            } else {
                const Made made = runner.run(method, condition_, shape_, mesh_, input_, seed_);
                row.points = made.cloud.size(), row.seconds = made.seconds;
                row.scores = score(made.cloud, truth(), mesh_, parse_device(plan_.device));
                if (is_shown_) save_cloud(output, made.cloud);
                rows.push_back(std::move(row));
            }
            if (plan_.advance) plan_.advance(1);
        }
        if (is_shown_ && !is_file(output_path(plan_, "truth", condition_, shape_, seed_))) truth();
        return rows;
    }

private:
    const PointCloud& truth() {
        if (truth_) return *truth_;
        truth_ = draw_truth(mesh_, given_, condition_, seed_);
        if (is_shown_) save_cloud(output_path(plan_, "truth", condition_, shape_, seed_), *truth_);
        return *truth_;
    }

    const StudyPlan& plan_;
    const Condition& condition_;
    const Shape& shape_;
    uint64_t seed_;
    const Mesh& mesh_;
    const PointCloud* given_;
    PointCloud input_;
    std::optional<PointCloud> truth_;
    bool is_shown_;
};

/// Calls work(InputWork&) for every input of a plan; a mesh is loaded once.
template <class Work>
void for_each_input(const StudyPlan& plan, Work&& work) {
    for (size_t s = 0; s < plan.shapes.size(); ++s) {
        const Mesh mesh = plan.load_mesh(plan.shapes[s].mesh);
        const std::optional<PointCloud> given = load_given(plan.shapes[s]);
        for (const Condition& condition : plan.conditions)
            for (int64_t i = 0; i < plan.seeds; ++i) {
                check_interrupted();
                InputWork input(plan, condition, plan.shapes[s], s, plan.first_seed + static_cast<uint64_t>(i), mesh,
                                given ? &*given : nullptr);
                work(input);
            }
    }
}

}  // namespace

void make_folders(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) throw Error(ErrorCode::cannot_write, Place{path}, error.message());
}

void write_text(const std::string& path, std::string_view text) {
    AtomicFile file(path, Overwrite::allow);
    file.write(text);
    file.commit();
}

int64_t study_rows(const StudyPlan& plan) {
    return static_cast<int64_t>(plan.conditions.size() * plan.methods.size() * plan.shapes.size()) * plan.seeds;
}

std::string input_path(const StudyPlan& plan, const Condition& condition, const Shape& shape, uint64_t seed) {
    return fmt::format("{}/inputs/{}/{}.ply", plan.folder, input_name(condition, seed), shape.name);
}

std::string output_path(const StudyPlan& plan, const std::string& method, const Condition& condition,
                        const Shape& shape, uint64_t seed) {
    return fmt::format("{}/outputs/{}/{}/{}.ply", plan.folder, method, input_name(condition, seed), shape.name);
}

void write_inputs(const StudyPlan& plan) {
    for_each_input(plan, [&](InputWork& input) {
        input.save_input();
        if (plan.advance) plan.advance(1);
    });
}

std::vector<Row> run_study(const StudyPlan& plan) {
    MethodRunner runner(plan.device, plan.has_several_inputs());
    for (const Method& method : plan.methods)
        for (const Condition& condition : plan.conditions)
            for (const Shape& shape : plan.shapes)
                for (int64_t i = 0; i < plan.seeds; ++i)
                    runner.check(method, condition, shape, plan.first_seed + static_cast<uint64_t>(i));
    const std::string file = plan.folder + "/results.csv";
    make_folders(plan.folder);
    std::map<RowKey, Row> rows;
    if (!plan.again && is_file(file))
        for (Row& row : load_rows(file)) rows[key_of(row)] = std::move(row);
    const auto save = [&] {
        std::vector<Row> all;
        for (const auto& [key, row] : rows) all.push_back(row);
        write_text(file, rows_to_csv(all));
    };
    std::map<RowKey, Row> made;
    for_each_input(plan, [&](InputWork& input) {
        input.save_input();
        for (Row& row : input.rows(runner, rows)) {
            rows[key_of(row)] = row;
            made[key_of(row)] = std::move(row);
        }
        save();
    });
    std::vector<Row> ordered;
    for (const Condition& condition : plan.conditions)
        for (const Method& method : plan.methods)
            for (const Shape& shape : plan.shapes)
                for (int64_t i = 0; i < plan.seeds; ++i) {
                    const auto found =
                        made.find({condition.id, shape.name, method.name, plan.first_seed + static_cast<uint64_t>(i)});
                    if (found != made.end()) ordered.push_back(found->second);
                }
    return ordered;
}

}  // namespace stipple::tasks::study
