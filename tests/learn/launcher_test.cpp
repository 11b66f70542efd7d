// Variables of launchers: who a process is, and what is said when they make no sense.

#include "stipple/learn/distributed/launcher.h"

#include <gtest/gtest.h>

#include <map>

#include "stipple/learn/train_request.h"
#include "tests/support/expect_error.h"

namespace stipple::learn {
namespace {

using Variables = std::map<std::string, std::string>;

Launch launch_of(const Variables& variables, Launcher launcher = Launcher::automatic) {
    return find_launch(launcher, [&](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return {};
        return found->second;
    });
}

const Variables kTorchrun = {
    {"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "12345"}};
const Variables kMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "2"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                        {"OMPI_MCA_ess_base_jobid", "3141599233"}};
const Variables kSlurm = {{"SLURM_PROCID", "5"},
                          {"SLURM_NTASKS", "8"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_STEP_NUM_TASKS", "8"},
                          {"SLURM_JOB_ID", "4711"},
                          {"SLURM_JOB_NODELIST", "login1,gpu[07-09]"},
                          {"SLURM_STEP_NODELIST", "gpu[07-09,12]"}};

Variables with(Variables variables, const Variables& others) {
    for (const auto& [name, value] : others) variables[name] = value;
    return variables;
}
Variables without(Variables variables, const std::string& name) {
    variables.erase(name);
    return variables;
}

TEST(Launcher, WithoutVariablesItIsOneProcess) {
    const Launch launch = launch_of({});
    EXPECT_EQ(launch.world, 1);
    EXPECT_EQ(launch.rank, 0);
    EXPECT_EQ(launch.launcher, "none");
    EXPECT_EQ(launch_of(kTorchrun, Launcher::none).world, 1);
}

TEST(Launcher, Torchrun) {
    const Launch launch = launch_of(kTorchrun);
    EXPECT_EQ(launch.rank, 3);
    EXPECT_EQ(launch.world, 4);
    EXPECT_EQ(launch.local_rank, 1);
    EXPECT_EQ(launch.address, "node7");
    EXPECT_EQ(launch.port, 12345);
    EXPECT_FALSE(launch.has_store);
    const Launch agent =
        launch_of(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}));
    EXPECT_TRUE(agent.has_store);
    EXPECT_EQ(agent.prefix, "stipple/2");
    EXPECT_EQ(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).address, "");
}

TEST(Launcher, OpenMpi) {
    const Launch launch = launch_of(kMpi);
    EXPECT_EQ(launch.rank, 1);
    EXPECT_EQ(launch.world, 2);
    EXPECT_EQ(launch.local_rank, 1);
    EXPECT_EQ(launch.address, "127.0.0.1");
    EXPECT_EQ(launch.port, 20000 + 3141599233 % 9000);
    EXPECT_EQ(launch.launcher, "Open MPI");
    EXPECT_EQ(launch_of(with(kMpi, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "80"}})).port, 80);
    EXPECT_ERROR(launch_of(with(kMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})), bad_argument, "MASTER_ADDR is not set");
}

TEST(Launcher, Slurm) {
    const Launch launch = launch_of(kSlurm);
    EXPECT_EQ(launch.rank, 5);
    EXPECT_EQ(launch.world, 8);
    EXPECT_EQ(launch.local_rank, 1);
    EXPECT_EQ(launch.address, "gpu07");
    EXPECT_EQ(launch.port, 24711);
    EXPECT_EQ(launch.launcher, "SLURM");
    EXPECT_EQ(launch_of(without(kSlurm, "SLURM_STEP_NODELIST")).address, "login1");
    // A batch script and an interactive shell are one process, whatever the job asked for.
    EXPECT_EQ(launch_of(without(kSlurm, "SLURM_STEP_NUM_TASKS")).world, 1);
    EXPECT_EQ(launch_of(without(kSlurm, "SLURM_STEP_NUM_TASKS"), Launcher::slurm).world, 8);
    EXPECT_ERROR(launch_of(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "2"}})), bad_argument,
                 "SLURM_NTASKS=8 contradicts SLURM_STEP_NUM_TASKS=2");
    EXPECT_ERROR(launch_of(with(kSlurm, {{"SLURM_STEP_NODELIST", "gpu[07"}})), bad_argument, "names no node");
}

TEST(Launcher, TheFirstThatIsThereCounts) {  // torchrun on every node of a SLURM job
    EXPECT_EQ(launch_of(with(kSlurm, kTorchrun)).launcher, "torchrun");
    EXPECT_EQ(launch_of(with(kSlurm, kMpi)).launcher, "Open MPI");
    EXPECT_EQ(launch_of(with(kSlurm, kTorchrun), Launcher::slurm).rank, 5);
}

TEST(Launcher, WhatMakesNoSenseIsNamed) {
    EXPECT_ERROR(launch_of(without(kTorchrun, "WORLD_SIZE")), bad_argument, "WORLD_SIZE is not set");
    EXPECT_ERROR(launch_of(without(kTorchrun, "RANK")), bad_argument, "RANK is not set");
    EXPECT_ERROR(launch_of(without(kTorchrun, "MASTER_ADDR")), bad_argument, "MASTER_ADDR is not set");
    EXPECT_ERROR(launch_of(without(kTorchrun, "MASTER_PORT")), bad_argument, "MASTER_PORT is not set");
    EXPECT_ERROR(launch_of(with(kTorchrun, {{"RANK", "4"}})), bad_argument, "RANK=4 is not below WORLD_SIZE=4");
    EXPECT_ERROR(launch_of(with(kTorchrun, {{"RANK", "-1"}})), bad_argument, "RANK=-1");
    EXPECT_ERROR(launch_of(with(kTorchrun, {{"WORLD_SIZE", "0"}})), bad_argument, "WORLD_SIZE=0");
    EXPECT_ERROR(launch_of(with(kTorchrun, {{"WORLD_SIZE", "two"}})), bad_argument, "WORLD_SIZE=two is no number");
    EXPECT_ERROR(launch_of(with(kTorchrun, {{"MASTER_PORT", "65536"}})), bad_argument, "MASTER_PORT=65536");
    EXPECT_ERROR(launch_of({}, Launcher::mpi), bad_argument, "Open MPI: OMPI_COMM_WORLD_SIZE is not set");
    EXPECT_ERROR(launch_of({}, Launcher::slurm), bad_argument, "SLURM: SLURM_NTASKS is not set");
    TrainRequest request;
    const std::vector<std::string> pbs = {"pbs"};
    EXPECT_ERROR(set_by_key(train_request_fields(), &request, "launcher", pbs), bad_argument,
                 "launcher must be one of auto, torchrun, mpi, slurm, none, got \"pbs\"");
}

TEST(Launcher, NodeListsOfSlurm) {
    EXPECT_EQ(first_host("gpu1"), "gpu1");
    EXPECT_EQ(first_host("gpu1,gpu2"), "gpu1");
    EXPECT_EQ(first_host("gpu[07-12,14],login1"), "gpu07");
    EXPECT_EQ(first_host("gpu[3]"), "gpu3");
    EXPECT_EQ(first_host("rack[1-2].cluster,x"), "rack1.cluster");
    EXPECT_EQ(first_host("gpu["), "");
    EXPECT_EQ(first_host(""), "");
}

}  // namespace
}  // namespace stipple::learn
