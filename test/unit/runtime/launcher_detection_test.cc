// The launcher that started this process, by recorded environments: what each launcher sets, and
// what goes wrong with it.
#include "runtime/bootstrap/launcher_detection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/bootstrap/adopted_agent_connector.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;
using Env = std::map<std::string, std::string>;

Result<DetectedLaunch> Choose(const Env& env) {
  return DetectLaunch([&](const char* name) -> std::optional<std::string> {
    auto found = env.find(name);
    return found == env.end() ? std::nullopt : std::optional(found->second);
  });
}

Env With(Env env, const Env& more) {
  for (const auto& [name, value] : more) env[name] = value;
  return env;
}
Env Without(Env env, const std::string& name) {
  env.erase(name);
  return env;
}

const Env kMpirun = {{"OMPI_COMM_WORLD_RANK", "2"},
                     {"OMPI_COMM_WORLD_SIZE", "4"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                     {"PMIX_NAMESPACE", "1906638849"},
                     {"PMIX_RANK", "2"},
                     {"PMIX_SERVER_URI2", "1906638848.0;tcp4://127.0.0.1:39649"}};
const Env kMpirunTwoHosts =
    With(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
const Env kSrun = {
    {"SLURM_JOB_ID", "7"},       {"SLURM_STEP_ID", "0"}, {"SLURM_STEPID", "0"},
    {"SLURM_PROCID", "1"},       {"SLURM_NTASKS", "4"},  {"SLURM_STEP_NUM_TASKS", "4"},
    {"SLURM_LOCALID", "1"},      {"SLURM_NODEID", "0"},  {"SLURM_STEP_TASKS_PER_NODE", "4"},
    {"SLURMD_NODENAME", "node1"}};
// The shell of sbatch -n4: a rank and a number of tasks, but no step.
const Env kSbatch = {{"SLURM_JOB_ID", "7"},  {"SLURM_PROCID", "0"},
                     {"SLURM_NTASKS", "4"},  {"SLURM_NPROCS", "4"},
                     {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"},
                     {"SLURM_NNODES", "2"},  {"SLURM_TASKS_PER_NODE", "2(x2)"}};
const Env kSalloc = {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "12"}, {"SLURM_NNODES", "4"}};
const Env kHydra = {{"PMI_RANK", "0"},
                    {"PMI_SIZE", "2"},
                    {"MPI_LOCALRANKID", "0"},
                    {"MPI_LOCALNRANKS", "2"},
                    {"PMI_FD", "6"}};
const Env kTorchrun = {{"TORCHELASTIC_RUN_ID", "r"},
                       {"TORCHELASTIC_RESTART_COUNT", "1"},
                       {"RANK", "1"},
                       {"WORLD_SIZE", "2"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "localhost"},
                       {"MASTER_PORT", "29500"}};
const Env kRendezvous = {{"HOROVOD_RANK", "3"},
                         {"HOROVOD_SIZE", "4"},
                         {"HOROVOD_LOCAL_RANK", "1"},
                         {"HOROVOD_LOCAL_SIZE", "2"},
                         {"HOROVOD_CROSS_RANK", "1"},
                         {"HOROVOD_CROSS_SIZE", "2"},
                         {"HOROVOD_HOSTNAME", "b"},
                         {"HOROVOD_CONTROLLER", "gloo"},
                         {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "192.0.2.1"},
                         {"HOROVOD_GLOO_RENDEZVOUS_PORT", "7000"}};

TEST(DetectedLaunch, ValuesAreShownOnOneLine) {
  for (const Env& env : {Env{{"HOROVOD_RANK", "1\n\x1b[2J"}, {"HOROVOD_SIZE", "2"}},
                         Env{{"HOROVOD_CPU_OPERATIONS", "mpi\n\x1b[2J"}},
                         With(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "4\n\x1b[2J"}})}) {
    const Result<DetectedLaunch> found = Choose(env);
    ASSERT_FALSE(found.ok());
    EXPECT_THAT(found.status().message(), HasSubstr("\\n\\x1b[2J"));
    EXPECT_EQ(found.status().message().find('\n'), std::string::npos);
  }
}

TEST(DetectedLaunch, Standalone) {
  for (const Env& env :
       {Env{}, kSbatch, kSalloc, With(kSbatch, {{"SLURM_STEP_ID", "4294967291"}}),
        With(kSalloc, {{"SLURM_STEP_ID", "4294967290"}, {"SLURM_PROCID", "0"}}),
        With(kSrun, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}),
        Env{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
        With(kTorchrun, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}), Without(kTorchrun, "RANK"),
        Env{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, Env{{"OMPI_MCA_btl", "self,tcp"}},
        Env{{"HOROVOD_RANK", "0"}, {"HOROVOD_SIZE", "1"}}, Env{{"HVD_AGENT", ""}},
        Env{{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "a"}}}) {
    Result<DetectedLaunch> choice = Choose(env);
    ASSERT_TRUE(choice.ok()) << choice.status().message();
    EXPECT_TRUE(std::holds_alternative<Standalone>(*choice));
  }
}

TEST(DetectedLaunch, HvdrunWinsOverEverybody) {
  Env env = With(With(kMpirun, kSrun),
                 With(kRendezvous, {{"HVD_AGENT", "a"}, {"HVD_SLOT", "3"}, {"HVD_JOB_KEY", "k"}}));
  AgentAddress address = std::get<AgentAddress>(Choose(env).value());
  EXPECT_EQ(address.name + " " + address.job_key, "a k");
  EXPECT_EQ(address.slot, 3u);
}

TEST(DetectedLaunch, EachLauncherInItsOwnWords) {
  const std::string openmpi = "openmpi 1906638849 1906638848.0;tcp4://127.0.0.1:39649";
  Env cyclic = With(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "1,2(x2),3"},
                            {"SLURM_NODEID", "2"},
                            {"SLURM_NTASKS", "99"},
                            {"SLURM_STEP_NUM_TASKS", "8"},
                            {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "h"},
                            {"HOROVOD_GLOO_RENDEZVOUS_PORT", "1"}});
  struct Case {
    Env env;
    ExternalRank expected;
  };
  for (const Case& c : {
           Case{kMpirun, {"mpirun", openmpi, "", 2, 4, 2, 4, ""}},
           // mpirun inside an allocation of Slurm: its daemons are the tasks of a step.
           Case{With(kSrun, kMpirun), {"mpirun", openmpi, "", 2, 4, 2, 4, ""}},
           Case{kSrun, {"srun", "slurm  7.0", "node1", 1, 4, 1, 4, ""}},
           Case{Without(kSrun, "SLURM_STEP_ID"), {"srun", "slurm  7.0", "node1", 1, 4, 1, 4, ""}},
           Case{cyclic, {"srun", "slurm  7.0", "node1", 1, 8, 1, 2, "h:1"}},
           Case{kHydra, {"mpirun", "", "", 0, 2, 0, 2, ""}},
           Case{kTorchrun, {"torchrun", "torchrun r localhost:29500 1", "", 1, 2, 1, 2, ""}},
           // srun or mpirun has started one torchrun on each host.
           Case{With(With(kSrun, kMpirun), kTorchrun),
                {"torchrun", "torchrun r localhost:29500 1", "", 1, 2, 1, 2, ""}},
           Case{kRendezvous,
                {"its launcher", "horovod  192.0.2.1:7000", "b", 3, 4, 1, 2, "192.0.2.1:7000"}},
           // Ray or an operator inside an allocation of Slurm.
           Case{With(kSrun, kRendezvous),
                {"its launcher", "horovod  192.0.2.1:7000", "b", 3, 4, 1, 2, "192.0.2.1:7000"}},
           Case{{{"HOROVOD_RANK", "1"},
                 {"HOROVOD_SIZE", "2"},
                 {"HOROVOD_LOCAL_RANK", "1"},
                 {"HOROVOD_LOCAL_SIZE", "2"},
                 {"HVD_JOB", "mine"}},
                {"its launcher", "horovod mine ", "", 1, 2, 1, 2, ""}},
       }) {
    Result<DetectedLaunch> choice = Choose(c.env);
    ASSERT_TRUE(choice.ok()) << choice.status().message();
    EXPECT_EQ(std::get<ExternalRank>(*choice), c.expected)
        << std::get<ExternalRank>(*choice).job << " of " << std::get<ExternalRank>(*choice).host;
  }
}

TEST(DetectedLaunch, WhereMpiIsToTellTheRest) {
  const Env mpi = {{"HOROVOD_CONTROLLER", "MPI"}}, gloo = {{"HOROVOD_CONTROLLER", "gloo"}};
  const Env operations = {{"HOROVOD_CPU_OPERATIONS", "mpi"}};
  const Env store = {{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "h"}, {"HOROVOD_GLOO_RENDEZVOUS_PORT", "1"}};
  const Env alone = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  struct Case {
    Env env;
    uint32_t size;
    bool over_mpi;
  };
  int number = 0;
  for (const Case& c : {
           Case{kMpirunTwoHosts, 4, true}, Case{With(kMpirunTwoHosts, store), 4, false},
           Case{With(kMpirunTwoHosts, With(store, mpi)), 4, true}, Case{kMpirun, 4, false},
           Case{With(kMpirun, gloo), 4, false}, Case{With(kMpirun, mpi), 4, true},
           Case{With(kMpirun, operations), 4, true}, Case{With(kSrun, mpi), 4, true},
           Case{With(kSrun, With(mpi, {{"SLURM_STEP_NUM_TASKS", "8"}})), 8, true},
           Case{With(kSrun, {{"SLURM_STEP_NUM_TASKS", "8"}, {"PMIX_RANK", "1"}}), 8, true},
           Case{With(kSrun, {{"PMIX_RANK", "1"}}), 4, false}, Case{With(alone, mpi), 1, true},
           Case{mpi, 0, true},  // MPI may know of a launcher that we do not know
       }) {
    Result<DetectedLaunch> choice = Choose(c.env);
    ASSERT_TRUE(choice.ok()) << choice.status().message();
    const ExternalRank rank = std::get<ExternalRank>(*choice);
    EXPECT_EQ(rank.over_mpi, c.over_mpi) << ++number;
    EXPECT_EQ(rank.size, c.size) << number;
  }
  // hvdrun has its own ways, and says gloo to scripts that look.
  const Env hvdrun = {{"HVD_AGENT", "a"}, {"HVD_SLOT", "3"}, {"HOROVOD_SIZE", "8"}};
  Result<DetectedLaunch> choice = Choose(With(hvdrun, mpi));
  EXPECT_EQ(std::get<AgentAddress>(choice.value()).size, 8u);
}

TEST(DetectedLaunch, WhatMakesNoSenseIsOneSentence) {
  Env no_store =
      Without(Without(kRendezvous, "HOROVOD_GLOO_RENDEZVOUS_ADDR"), "HOROVOD_GLOO_RENDEZVOUS_PORT");
  struct Case {
    Env env;
    const char* says;
  };
  for (const Case& c : {
           Case{{{"HOROVOD_RANK", "0"}}, "HOROVOD_RANK is set and HOROVOD_SIZE is not"},
           Case{{{"HOROVOD_SIZE", "2"}}, "HOROVOD_SIZE is set and HOROVOD_RANK is not"},
           Case{{{"PMI_SIZE", "2"}}, "PMI_SIZE is set and PMI_RANK is not"},
           Case{Without(kMpirun, "OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_SIZE is not"},
           Case{Without(kRendezvous, "HOROVOD_LOCAL_RANK"), "HOROVOD_LOCAL_RANK is not"},
           Case{With(kRendezvous, {{"HOROVOD_RANK", "4"}}), "rank 4 of 4, local rank 1 of 2"},
           Case{With(kRendezvous, {{"HOROVOD_LOCAL_RANK", "2"}}), "local rank 2 of 2"},
           Case{With(kRendezvous, {{"HOROVOD_SIZE", "0"}}), "rank 3 of 0"},
           Case{With(kRendezvous, {{"HOROVOD_SIZE", "4x"}}), "HOROVOD_SIZE=4x is not a number"},
           Case{With(kRendezvous, {{"HOROVOD_SIZE", "-4"}}), "HOROVOD_SIZE=-4 is not a number"},
           Case{With(kRendezvous, {{"HOROVOD_SIZE", "99999999999"}}), "is not a number"},
           Case{Without(kRendezvous, "HOROVOD_GLOO_RENDEZVOUS_PORT"),
                "HOROVOD_GLOO_RENDEZVOUS_PORT is not"},
           Case{Without(kRendezvous, "HOROVOD_GLOO_RENDEZVOUS_ADDR"),
                "HOROVOD_GLOO_RENDEZVOUS_ADDR is not"},
           Case{With(kRendezvous, {{"HOROVOD_GLOO_RENDEZVOUS_PORT", "70000"}}), "70000 is no port"},
           Case{no_store, "not how it finds the others"},
           Case{With(no_store, {{"HVD_JOB", "x"}}), "the world spans several hosts"},
           Case{With(kRendezvous, kMpirun), "rank 3 of 4, OMPI_COMM_WORLD_RANK"},
           Case{With(kRendezvous, {{"HOROVOD_ELASTIC", "1"}}), "unset HOROVOD_ELASTIC"},
           Case{With(kMpirun, {{"HOROVOD_ELASTIC", "1"}}), "unset HOROVOD_ELASTIC"},
           Case{With(kSrun, {{"HOROVOD_ELASTIC", "1"}}), "unset HOROVOD_ELASTIC"},
           Case{With(kMpirunTwoHosts, {{"HOROVOD_CONTROLLER", "gloo"}}),
                "start the job with hvdrun, set HOROVOD_GLOO_RENDEZVOUS_ADDR"},
           Case{With(kSrun, {{"SLURM_STEP_NUM_TASKS", "8"}}), "or let the ranks meet by MPI"},
           Case{With(kMpirun, {{"HOROVOD_CONTROLLER", "MPICH"}}), "HOROVOD_CONTROLLER is 'MPICH'"},
           Case{With(kMpirun, {{"HOROVOD_CPU_OPERATIONS", "ccl"}}), "is 'ccl', which is neither"},
           Case{With(kMpirun, {{"HOROVOD_CONTROLLER", "mpi"}, {"HOROVOD_CPU_OPERATIONS", "Gloo"}}),
                "HOROVOD_CONTROLLER=mpi and HOROVOD_CPU_OPERATIONS=Gloo contradict each other"},
           Case{Without(kSrun, "SLURM_STEP_TASKS_PER_NODE"), "SLURM_STEP_TASKS_PER_NODE= does not"},
           Case{With(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "2(x"}}), "does not tell how many"},
           Case{With(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "4"}, {"SLURM_NODEID", "1"}}),
                "how many tasks node 1"},
           Case{{{"HVD_AGENT", "a"}}, "HVD_AGENT is set and HVD_SLOT is not"},
           Case{{{"HVD_AGENT", "a"}, {"HVD_SLOT", "x"}}, "HVD_SLOT=x is not a number"},
       }) {
    Result<DetectedLaunch> choice = Choose(c.env);
    ASSERT_FALSE(choice.ok()) << c.says;
    EXPECT_THAT(choice.status().message(), HasSubstr(c.says));
  }
}

TEST(AdoptedAgentConnector, JobsAndHostsAreToldApart) {
  ExternalRank rank{"mpirun", "job", "host", 0, 4, 0, 2, "s:1"};
  ExternalRank peer = rank, other_job = rank, other_host = rank;
  peer.rank = peer.local_rank = 1;
  other_job.job = "job2";
  other_host.host = "host2";
  EXPECT_EQ(AdoptedJobId(rank), AdoptedJobId(peer));
  EXPECT_NE(AdoptedJobId(rank), AdoptedJobId(other_job));
  EXPECT_NE(AdoptedJobId(rank), AdoptedJobId(other_host));
  EXPECT_NE(AdoptAddress("id", 0), AdoptAddress("id", 1000)) << "another user's";
  EXPECT_LE(AdoptAddress(AdoptedJobId(rank), ~0U).size(), 107u);
  EXPECT_THAT(AdoptArguments(rank, "id"),
              ::testing::ElementsAre("agent", "--adopt", "id", "--slots", "2", "--size", "4",
                                     "--host", "host", "--store", "s:1"));
}

}  // namespace
}  // namespace hvd
