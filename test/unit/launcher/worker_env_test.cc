#include "launcher/agent/environment/worker_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Not;

std::vector<std::string> EnvironmentOf(std::vector<std::string> inherited,
                                       std::vector<std::string> settings = {},
                                       std::vector<std::string> given = {}, int omp_threads = -1,
                                       WorkerShare share = {}) {
  StartJob start;
  start.job_id = "job";  // of which "id" is this host's part
  start.job_key = "key";
  start.host = "h1";
  start.ranks.size = 4;
  start.ranks.slots = {{2, 1, 0, 2, 1, 2}, {3, 1, 1, 2, 1, 2}};
  start.program.environment = std::move(inherited);
  start.program.settings = std::move(settings);
  start.program.given = std::move(given);
  start.share.omp_threads = omp_threads;
  start.meeting.master_address = "127.0.0.1";
  start.meeting.master_port = 1234;
  return WorkerEnvironment(start, 1, {"hvd-x", "id"},
                           {"/p/lib/libhvd.so", "/p/lib/hvdrun/python", "/p/startup"}, share);
}

TEST(WorkerEnvironment, TellsTheSlot) {
  std::vector<std::string> environment = EnvironmentOf({});
  for (const char* entry :
       {"HOROVOD_RANK=3", "HOROVOD_SIZE=4", "HOROVOD_LOCAL_RANK=1", "HOROVOD_LOCAL_SIZE=2",
        "HOROVOD_CROSS_RANK=1", "HOROVOD_CROSS_SIZE=2", "HOROVOD_HOSTNAME=h1",
        "HOROVOD_CONTROLLER=gloo", "HOROVOD_CPU_OPERATIONS=gloo", "HVD_AGENT=hvd-x", "HVD_SLOT=1",
        "HVD_JOB_KEY=key", "HVD_JOB_ID=id", "HVD_RUNTIME=/p/lib/libhvd.so",
        "PYTHONPATH=/p/lib/hvdrun/python", "PYTHONUNBUFFERED=1"}) {
    EXPECT_THAT(environment, Contains(entry));
  }
}

TEST(WorkerEnvironment, HasPythonStartWithTheBackendOfTorchOnlyWhereItIsAskedFor) {
  for (const char* asked : {"HOROVOD_TORCH_BACKEND=hvd", "HOROVOD_TORCH_BACKEND=gloo"}) {
    const bool is_ours = std::string(asked).ends_with("hvd");
    EXPECT_THAT(EnvironmentOf({"PYTHONPATH=/mine"}, {asked}),
                Contains(is_ours ? "PYTHONPATH=/p/startup:/p/lib/hvdrun/python:/mine"
                                 : "PYTHONPATH=/p/lib/hvdrun/python:/mine"));
  }
}

TEST(WorkerEnvironment, ShowsAWorkerItsGpuAlone) {
  const WorkerShare share{0, 0, "GPU-7"};
  std::vector<std::string> environment =
      EnvironmentOf({"CUDA_VISIBLE_DEVICES=GPU-6,GPU-7"}, {}, {}, -1, share);
  EXPECT_THAT(environment, Contains("CUDA_VISIBLE_DEVICES=GPU-7"));
  EXPECT_THAT(environment, Contains("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  environment = EnvironmentOf({"CUDA_DEVICE_ORDER=FASTEST_FIRST"}, {}, {}, -1, share);
  EXPECT_THAT(environment, Contains("CUDA_DEVICE_ORDER=FASTEST_FIRST")) << "the user's";
  environment = EnvironmentOf({"CUDA_VISIBLE_DEVICES=0,1"});
  EXPECT_THAT(environment, Contains("CUDA_VISIBLE_DEVICES=0,1"));
  EXPECT_THAT(environment, Not(Contains(::testing::StartsWith("CUDA_DEVICE_ORDER="))));
}

TEST(WorkerEnvironment, TellsWhatTorchrunTells) {
  std::vector<std::string> environment =
      EnvironmentOf({"TORCHELASTIC_USE_AGENT_STORE=True", "TORCHELASTIC_RUN_ID=outer"},
                    /*settings=*/{}, /*given=*/{"GROUP_RANK=9"});
  for (const char* entry :
       {"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=1",
        "NODE_RANK=1", "GROUP_WORLD_SIZE=2", "ROLE_RANK=3", "ROLE_WORLD_SIZE=4",
        "TORCHELASTIC_RUN_ID=job", "TORCHELASTIC_RESTART_COUNT=0", "TORCHELASTIC_MAX_RESTARTS=0"}) {
    EXPECT_THAT(environment, Contains(entry));
  }
  EXPECT_THAT(environment, Not(Contains(::testing::StartsWith("TORCHELASTIC_USE_AGENT_STORE"))));
}

TEST(WorkerEnvironment, NamesTheInterfaceUnlessTheUserDid) {
  StartJob start;
  start.ranks.slots = {{0, 0, 0, 1, 0, 1}};
  start.program.environment = {"NCCL_SOCKET_IFNAME=ib0"};
  std::vector<std::string> environment =
      WorkerEnvironment(start, 0, {"a", "id", "", "eth1"}, {}, {});
  EXPECT_THAT(environment, Contains("GLOO_SOCKET_IFNAME=eth1"));
  EXPECT_THAT(environment, Contains("NCCL_SOCKET_IFNAME=ib0"));
  environment = WorkerEnvironment(start, 0, {"a", "id"}, {}, {});
  EXPECT_THAT(environment, Not(Contains(::testing::StartsWith("GLOO_SOCKET_IFNAME"))));
}

std::vector<std::string> RecorderOf(TorchVersion version, std::vector<std::string> inherited) {
  StartJob start;
  start.ranks.slots = {{5, 0, 0, 1, 0, 1}};
  start.program.environment = std::move(inherited);
  WorkerLink link{"a", "id"};
  link.recorder = {"/tmp/hvdrun-flight-id-9", version};
  std::vector<std::string> environment = WorkerEnvironment(start, 0, link, {}, {});
  std::erase_if(environment, [](const std::string& entry) {
    return !entry.starts_with("TORCH_FR") && !entry.starts_with("TORCH_NCCL");
  });
  return environment;
}

TEST(WorkerEnvironment, PyTorchRecordsUnlessTheUserHasSaidOtherwise) {
  using testing::ElementsAre;
  const std::string pipe = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/hvdrun-flight-id-9/5.";
  EXPECT_THAT(RecorderOf({2, 15}, {}),
              ElementsAre("TORCH_FR_BUFFER_SIZE=2000",
                          "TORCH_FR_DUMP_TEMP_FILE=/tmp/hvdrun-flight-id-9/5.", pipe));
  EXPECT_THAT(RecorderOf({2, 15}, {"TORCH_NCCL_TRACE_BUFFER_SIZE=0", "TORCH_FR_DUMP_TEMP_FILE=/m"}),
              ElementsAre("TORCH_FR_DUMP_TEMP_FILE=/m", pipe, "TORCH_NCCL_TRACE_BUFFER_SIZE=0"));
  EXPECT_THAT(RecorderOf({2, 6}, {"TORCH_NCCL_DUMP_ON_TIMEOUT=0"}),
              ElementsAre("TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/hvdrun-flight-id-9/5.",
                          "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/tmp/hvdrun-flight-id-9/5.",
                          "TORCH_NCCL_DUMP_ON_TIMEOUT=0", "TORCH_NCCL_TRACE_BUFFER_SIZE=2000"));
}

TEST(WorkerEnvironment, ThePipesOfAnOuterJobAreNotInherited) {
  const std::vector<std::string> outer{"TORCH_FR_DUMP_TEMP_FILE=/tmp/hvdrun-flight-outer-7/0."};
  EXPECT_THAT(RecorderOf({2, 15}, outer),
              Contains("TORCH_FR_DUMP_TEMP_FILE=/tmp/hvdrun-flight-id-9/5."));
}

TEST(WorkerEnvironment, WorkersOfStockHorovodGetItsRendezvousAndNothingOfOurs) {
  StartJob start;
  start.job_key = "key";
  start.ranks.slots = {{0, 0, 0, 1, 0, 1}};
  start.program.environment = {"PYTHONPATH=/mine", "HOROVOD_GLOO_IFACE=old",
                               "NCCL_SOCKET_IFNAME=ib0"};
  start.program.given = {"HOROVOD_GLOO_RENDEZVOUS_ADDR=wrong"};
  start.meeting.rendezvous = "10.0.0.1:4711";
  const std::vector<std::string> environment =
      WorkerEnvironment(start, 0, {"a", "id", "", "eth1"}, {"/lib", "/python"}, {});
  for (const char* entry :
       {"HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT=4711",
        "HOROVOD_GLOO_IFACE=eth1", "NCCL_SOCKET_IFNAME=ib0", "PYTHONPATH=/mine",
        "HOROVOD_CONTROLLER=gloo", "HOROVOD_RANK=0", "HVD_JOB_ID=id"}) {
    EXPECT_THAT(environment, Contains(entry));
  }
  for (const char* name : {"HVD_AGENT=", "HVD_SLOT=", "HVD_JOB_KEY=", "HVD_RUNTIME="})
    EXPECT_THAT(environment, Not(Contains(::testing::StartsWith(name))));
}

TEST(WorkerEnvironment, SlotBeatsSettingsBeatsInheritance) {
  std::vector<std::string> environment = EnvironmentOf(
      {"HOROVOD_RANK=9", "HOROVOD_CYCLE_TIME=5", "PLAIN=kept", "PYTHONPATH=/mine", "EMPTY="},
      {"HOROVOD_CYCLE_TIME=1", "HOROVOD_SIZE=9"});
  for (const char* entry : {"HOROVOD_RANK=3", "HOROVOD_SIZE=4", "HOROVOD_CYCLE_TIME=1",
                            "PLAIN=kept", "EMPTY=", "PYTHONPATH=/p/lib/hvdrun/python:/mine"}) {
    EXPECT_THAT(environment, Contains(entry));
  }
  EXPECT_THAT(environment, Not(Contains("HOROVOD_RANK=9")));
}

TEST(WorkerEnvironment, NothingOfAnOuterJobIsInherited) {
  std::vector<std::string> environment =
      EnvironmentOf({"HVD_AGENT=outer", "HVD_ELSE=x", "HOROVOD_ELASTIC=1"});
  EXPECT_THAT(environment, Not(Contains("HVD_AGENT=outer")));
  EXPECT_THAT(environment, Not(Contains("HVD_ELSE=x")));
  EXPECT_THAT(environment, Not(Contains("HOROVOD_ELASTIC=1")));
}

TEST(WorkerEnvironment, WhatTheUserGaveBeatsSettingsButNoSlot) {
  std::vector<std::string> environment =
      EnvironmentOf({"A=inherited", "MASTER_PORT=9"}, {"HOROVOD_CYCLE_TIME=1"},
                    {"A=file", "A=flag", "HOROVOD_CYCLE_TIME=2", "RANK=9", "MASTER_ADDR=there",
                     "OLDPWD=/wanted", "HVD_SLOT=9", "PYTHONPATH=/given"});
  for (const char* entry :
       {"A=flag", "HOROVOD_CYCLE_TIME=2", "RANK=3", "MASTER_ADDR=there", "MASTER_PORT=1234",
        "OLDPWD=/wanted", "HVD_SLOT=1", "PYTHONPATH=/p/lib/hvdrun/python:/given"}) {
    EXPECT_THAT(environment, Contains(entry));
  }
}

TEST(WorkerEnvironment, TheTaskThatHvdrunItselfIsIsNotTheRanks) {
  const std::vector<std::string> inherited = {
      "SLURM_PROCID=0",         "SLURM_LOCALID=0", "SLURM_NODEID=0",        "SLURM_JOB_ID=7",
      "OMPI_COMM_WORLD_RANK=0", "PMI_RANK=0",      "PMIX_RANK=0",           "PMIX_MCA_gds=hash",
      "JSM_NAMESPACE_RANK=0",   "PMI_FD=9",        "OMPI_MCA_btl=self,tcp", "FLUX_TASK_RANK=0",
      "MV2_COMM_WORLD_RANK=0"};
  const std::vector<std::string> environment = EnvironmentOf(inherited);
  for (const char* entry : {"SLURM_PROCID=3", "SLURM_LOCALID=1", "SLURM_NODEID=1", "SLURM_JOB_ID=7",
                            "PMIX_MCA_gds=hash", "OMPI_MCA_btl=self,tcp"})
    EXPECT_THAT(environment, Contains(entry));
  for (const char* name : {"OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK=", "PMI_FD=",
                           "JSM_NAMESPACE_RANK=", "FLUX_TASK_RANK=", "MV2_COMM_WORLD_RANK="})
    EXPECT_THAT(environment, Not(Contains(::testing::StartsWith(name))));
  EXPECT_THAT(EnvironmentOf({}), Not(Contains(::testing::StartsWith("SLURM_PROCID="))));
  EXPECT_THAT(EnvironmentOf(inherited, {}, {"SLURM_PROCID=9", "PMI_RANK=9"}),
              ::testing::AllOf(Contains("SLURM_PROCID=9"), Contains("PMI_RANK=9")))
      << "-x wins";
}

TEST(WorkerEnvironment, TheTaskInWhosePlaceARankIsStays) {
  StartJob start;
  start.ranks.slots = {{1, 0, 0, 1, 0, 1}};
  start.program.environment = {"OMPI_COMM_WORLD_SIZE=2", "SLURM_PROCID=5"};
  WorkerLink link{"a", "id"};
  link.launcher_environment = {"OMPI_COMM_WORLD_RANK=1"};
  const std::vector<std::string> environment = WorkerEnvironment(start, 0, link, {}, {});
  for (const char* entry : {"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "SLURM_PROCID=5"})
    EXPECT_THAT(environment, Contains(entry));
}

TEST(WorkerEnvironment, TheLoginOfAnotherHostTakesThePlaceOfHvdruns) {
  StartJob start;
  start.ranks.slots = {{0, 0, 0, 1, 0, 1}};
  start.program.environment = {"HOME=/head/ann", "USER=ann", "TMPDIR=/fast",
                               "BASH_FUNC_module%%=() {  :\n}"};
  start.program.given = {"USER=wanted"};
  WorkerLink link{"a", "id"};
  link.login = {{"HOME=/home/bob", "USER=bob"}, {"TMPDIR"}};
  const std::vector<std::string> environment = WorkerEnvironment(start, 0, link, {}, {});
  for (const char* entry : {"HOME=/home/bob", "USER=wanted", "BASH_FUNC_module%%=() {  :\n}"})
    EXPECT_THAT(environment, Contains(entry));
  EXPECT_THAT(environment, Not(Contains(::testing::StartsWith("TMPDIR="))));
}

TEST(WorkerEnvironment, TellsTorchItsPlace) {
  std::vector<std::string> environment =
      EnvironmentOf({"RANK=7", "WORLD_SIZE=9", "TORCHELASTIC_USE_AGENT_STORE=True"});
  for (const char* entry : {"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
                            "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1234"}) {
    EXPECT_THAT(environment, Contains(entry));
  }
  EXPECT_THAT(environment, Not(Contains("TORCHELASTIC_USE_AGENT_STORE=True")));
}

TEST(WorkerEnvironment, ThreadsAreAShareOfTheCores) {
  EXPECT_THAT(EnvironmentOf({}, {}, {}, 0, {8, 0}), Contains("OMP_NUM_THREADS=4"));
  EXPECT_THAT(EnvironmentOf({}, {}, {}, 0, {8, 3}), Contains("OMP_NUM_THREADS=3"));
  EXPECT_THAT(EnvironmentOf({}, {}, {}, 0, {1, 0}), Contains("OMP_NUM_THREADS=1"));
  EXPECT_THAT(EnvironmentOf({"OMP_NUM_THREADS=7"}, {}, {}, 0, {8, 0}),
              Contains("OMP_NUM_THREADS=7"));
  EXPECT_THAT(EnvironmentOf({"OMP_NUM_THREADS=7"}, {}, {}, 5, {8, 0}),
              Contains("OMP_NUM_THREADS=5"));
  EXPECT_THAT(EnvironmentOf({}, {}, {"OMP_NUM_THREADS=6"}, 5, {8, 0}),
              Contains("OMP_NUM_THREADS=6"));
  for (const std::string& entry : EnvironmentOf({}, {}, {}, -1, {8, 0}))
    EXPECT_FALSE(entry.starts_with("OMP_NUM_THREADS")) << entry;
  EXPECT_THAT(EnvironmentOf({}, {}, {}, -1, {8, 2}), Contains("HVD_HOST_CORES=8"));
}

TEST(WorkerEnvironment, ThreadsStayWithinTheCpuQuota) {
  EXPECT_THAT(EnvironmentOf({}, {}, {}, 0, {64, 0, "", 4}),
              AllOf(Contains("OMP_NUM_THREADS=2"), Contains("HVD_HOST_CORES=4")));
  EXPECT_THAT(EnvironmentOf({}, {}, {}, 0, {64, 32, "", 1}),
              AllOf(Contains("OMP_NUM_THREADS=1"), Contains("HVD_HOST_CORES=1")));
  EXPECT_THAT(EnvironmentOf({}, {}, {}, 0, {64, 1, "", 60}), Contains("OMP_NUM_THREADS=1"));
}

TEST(PrintEnvText, SaysWhyAndHidesTheKey) {
  ExplainedEnvironment environment;
  environment.variables = {{"A", "x\ny\x01", "inherited"}, {"HVD_JOB_KEY", "secret", "agent"}};
  environment.left_out = {{"OLDPWD", "it belongs to the shell"}};
  std::string text = PrintEnvText(environment);
  EXPECT_NE(text.find("A=x\\ny\\x01  # inherited\n"), std::string::npos) << text;
  EXPECT_NE(text.find("HVD_JOB_KEY=...  # a secret of the job, not shown\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("# not passed on: OLDPWD, because it belongs to the shell\n"),
            std::string::npos);
}

}  // namespace
}  // namespace hvd
