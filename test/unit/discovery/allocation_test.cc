// The words of each scheduler about its allocation, by tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "discovery/allocations/find_allocation.h"
#include "discovery/allocations/kubernetes_allocation.h"
#include "discovery/allocations/node_group.h"
#include "discovery/allocations/slurm_allocation.h"
#include "discovery/allocations/slurm_job.h"
#include "discovery/allocations/slurm_nodes.h"
#include "discovery/allocations/task_check.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;

using Env = std::map<std::string, std::string>;

struct World {
  Env env;
  Env files = {};
  Env programs = {};  // what a command prints; empty: there are none to be asked

  AllocationFacts Facts() const {
    return {[this](const char* name) -> std::optional<std::string> {
              const auto found = env.find(name);
              if (found == env.end()) return std::nullopt;
              return found->second;
            },
            [this](const std::string& path) -> Result<std::string> {
              const auto found = files.find(path);
              if (found != files.end()) return found->second;
              return InvalidArgument("cannot be read: No such file or directory");
            },
            [](const std::string&) { return true; },
            [] { return 6U; },
            programs.empty() ? nullptr : Programs(),
            [this] {
              std::vector<std::string> names;
              for (const auto& [name, value] : env) names.push_back(name);
              return names;
            }};
  }
  std::function<Result<std::string>(const std::vector<std::string>&)> Programs() const {
    return [this](const std::vector<std::string>& command) -> Result<std::string> {
      std::string line;
      for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
      const auto found = programs.find(line);
      if (found != programs.end()) return found->second;
      return InvalidArgument("does not answer");
    };
  }
  Result<std::optional<Allocation>> Find() const { return FindAllocation(Facts()); }
  // "4 one per task: a:2,b:2", "none", or the sentence of an error.
  std::string Text() const {
    const Result<std::optional<Allocation>> found = Find();
    if (!found.ok()) return found.status().message();
    if (!*found) return "none";
    return std::to_string((*found)->slots) + " " + std::string((*found)->slots_are) + ": " +
           HostListText((*found)->hosts);
  }
};

World OfCsm(const char* nodes, const char* first) {
  return {
      {{"LSB_JOBID", "5"},
       {"CSM_ALLOCATION_ID", "9"},
       {"CSM_NODE_ATTRIBUTES_QUERY", "/bin/attributes"},
       {"LSB_DJOB_HOSTFILE", "/f"}},
      {{"/f", "batch1\nother\n"}},
      {{"/opt/ibm/csm/bin/csm_allocation_query -a 9", nodes}, {"/bin/attributes -n c1", first}}};
}

TEST(LsfAllocation, IsWhatCsmSaysWhereItsProgramsAre) {
  const char* nodes =
      "---\nallocation_id: 9\nlaunch_node_name: batch1\nisolated_cores: 1\n"
      "compute_nodes:\n - c2\n - c1\n...\n";
  EXPECT_EQ(OfCsm(nodes,
                  "---\nTOTAL_RECORDS: 1\nRecord_1:\n  node_name: c1\n  discovered_cores: 44\n"
                  "  discovered_sockets: 2\n  discovered_gpus: 6\n...\n")
                .Text(),
            "12 one per GPU: c1:6,c2:6");
  EXPECT_EQ(OfCsm(nodes, "Record_1: {discovered_cores: 44, discovered_sockets: 2}").Text(),
            "84 one per core: c1:42,c2:42")
      << "without the cores that CSM isolates";
}

TEST(LsfAllocation, SaysInOneSentenceWhatCsmDoesNotSay) {
  const char* node = "Record_1: {discovered_gpus: 6}";
  struct CsmRow {
    const char *nodes, *node, *text;
  };
  for (const CsmRow& row : {
           CsmRow{"compute_nodes: [c2]", node, "/bin/attributes does not answer"},
           {"compute_nodes: []", node, "names no compute_nodes"},
           {"no such allocation", node, "says nothing that can be read"},
           {"compute_nodes: [c1, [c2", node, "says nothing that can be read"},
           {"compute_nodes: [c1]\nisolated_cores: many", node, "'many' for isolated_cores"},
           {"compute_nodes: [c1]", "Record_1: {discovered_gpus: -1}", "'-1' for"},
           {"compute_nodes: [c1]", "Record_1: {}", "neither GPUs nor cores on c1"},
           {"compute_nodes: [c1, 'c 3']", node, "c 3"},
       }) {
    const std::string text = OfCsm(row.nodes, row.node).Text();
    EXPECT_THAT(text, HasSubstr(row.text));
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

struct SlurmRow {
  const char* what;
  Env env;
  const char* text;
};

TEST(SlurmAllocation, GivesHostsAndSlots) {
  const SlurmRow rows[] = {
      {"salloc -N2 with 4 CPUs each",
       {{"SLURM_JOB_NODELIST", "node[1-2]"},
        {"SLURM_TASKS_PER_NODE", "1(x2)"},
        {"SLURM_JOB_CPUS_PER_NODE", "4(x2)"}},
       "8 one per CPU: node1:4,node2:4"},
      {"--ntasks-per-node=3",
       {{"SLURM_NODELIST", "node[1-4]"},
        {"SLURM_NTASKS", "12"},
        {"SLURM_NTASKS_PER_NODE", "3"},
        {"SLURM_TASKS_PER_NODE", "3(x4)"}},
       "12 one per task: node1:3,node2:3,node3:3,node4:3"},
      {"-w node1,node3,node4 -n10",
       {{"SLURM_JOB_NODELIST", "node[1,3-4]"},
        {"SLURM_NTASKS", "10"},
        {"SLURM_TASKS_PER_NODE", "4(x2),2"}},
       "10 one per task: node1:4,node3:4,node4:2"},
      {"zeros, two dimensions, and more than one name",
       {{"SLURM_JOB_NODELIST", "x[09-10],n[1-2]-ib[0-1],gpu01"},
        {"SLURM_NTASKS", "7"},
        {"SLURM_TASKS_PER_NODE", "1(x7)"}},
       "7 one per task: x09:1,x10:1,n1-ib0:1,n1-ib1:1,n2-ib0:1,n2-ib1:1,gpu01:1"},
      {"GPUs go before CPUs",
       {{"SLURM_JOB_NODELIST", "a,b"},
        {"SLURM_GPUS_PER_NODE", "a100:2,v100:1"},
        {"SLURM_JOB_CPUS_PER_NODE", "64(x2)"}},
       "6 one per GPU: a:3,b:3"},
      {"GPUs of the whole job",
       {{"SLURM_JOB_NODELIST", "a,b"}, {"SLURM_GPUS", "8"}, {"SLURM_JOB_CPUS_PER_NODE", "64(x2)"}},
       "8 one per GPU: a:4,b:4"},
      {"--gres names those of one node",
       {{"SLURM_JOB_NODELIST", "a,b"},
        {"SLURM_GPUS_ON_NODE", "2"},
        {"SLURM_JOB_CPUS_PER_NODE", "64(x2)"}},
       "4 one per GPU: a:2,b:2"},
      {"one task and several GPUs a node",
       {{"SLURM_JOB_NODELIST", "a,b"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_TASKS_PER_NODE", "1(x2)"},
        {"SLURM_GPUS_ON_NODE", "4"},
        {"SLURM_JOB_CPUS_PER_NODE", "64(x2)"}},
       "8 one per GPU: a:4,b:4"},
      {"one task and one GPU a node",
       {{"SLURM_JOB_NODELIST", "a,b"},
        {"SLURM_NTASKS_PER_NODE", "1"},
        {"SLURM_GPUS_PER_NODE", "1"},
        {"SLURM_JOB_CPUS_PER_NODE", "64(x2)"}},
       "2 one per task: a:1,b:1"},
      {"tasks go before GPUs",
       {{"SLURM_JOB_NODELIST", "a"}, {"SLURM_NTASKS_PER_NODE", "2"}, {"SLURM_GPUS_PER_NODE", "4"}},
       "2 one per task: a:2"},
      {"--cpus-per-task without tasks",
       {{"SLURM_JOB_NODELIST", "a,b"},
        {"SLURM_CPUS_PER_TASK", "4"},
        {"SLURM_JOB_CPUS_PER_NODE", "16(x2)"}},
       "8 one per CPU: a:4,b:4"},
      {"an interactive step has one task, which nobody asked for",
       {{"SLURM_JOB_NODELIST", "a,b"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_NTASKS", "1"},
        {"SLURM_TASKS_PER_NODE", "1"},
        {"SLURM_PTY_PORT", "1"},
        {"SLURM_JOB_CPUS_PER_NODE", "2(x2)"}},
       "4 one per CPU: a:2,b:2"},
      {"the shell of sbatch is no step",
       {{"SLURM_JOB_NODELIST", "a,b"},
        {"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "4"},
        {"SLURM_TASKS_PER_NODE", "2(x2)"}},
       "4 one per task: a:2,b:2"},
      {"a heterogeneous job",
       {{"SLURM_HET_SIZE", "2"},
        {"SLURM_JOB_NODELIST_HET_GROUP_0", "a"},
        {"SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0", "4"},
        {"SLURM_JOB_NODELIST_HET_GROUP_1", "b[1-2]"},
        {"SLURM_NTASKS_HET_GROUP_1", "4"},
        {"SLURM_TASKS_PER_NODE_HET_GROUP_1", "2(x2)"}},
       "8 one per task: a:4,b1:2,b2:2"},
  };
  for (const SlurmRow& row : rows) {
    World world{row.env};
    world.env["SLURM_JOB_ID"] = "7";
    EXPECT_EQ(world.Text(), row.text) << row.what;
  }
}

TEST(SlurmAllocation, RefusesWhatWasCutOrChangedInOneSentence) {
  const std::string long_list(65'536, '[');
  const SlurmRow rows[] = {
      {"no nodes", {}, "SLURM_JOB_NODELIST is not"},
      {"cut range", {{"SLURM_JOB_NODELIST", "node[1-2"}}, "SLURM_JOB_NODELIST=node[1-2 is no list"},
      {"a million", {{"SLURM_JOB_NODELIST", "n[1-1000000]"}}, "more than the 100000 hosts"},
      {"product", {{"SLURM_JOB_NODELIST", "n[1-999][1-999]"}}, "more than the 100000 hosts"},
      {"option", {{"SLURM_JOB_NODELIST", "-x"}}, "begins like an option"},
      {"port", {{"SLURM_JOB_NODELIST", "a:2"}}, "is no list of nodes"},
      {"64 KiB", {{"SLURM_JOB_NODELIST", long_list.c_str()}}, "is no list"},
      {"too few",
       {{"SLURM_JOB_NODELIST", "a,b"}, {"SLURM_NTASKS", "2"}, {"SLURM_TASKS_PER_NODE", "2"}},
       "does not tell the tasks of each of the 2 nodes"},
      {"too many",
       {{"SLURM_JOB_NODELIST", "a"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_TASKS_PER_NODE", "2(x1000000000)"}},
       "does not tell the tasks of each of the 1 nodes"},
      {"words",
       {{"SLURM_JOB_NODELIST", "a"}, {"SLURM_JOB_CPUS_PER_NODE", "many"}},
       "does not tell the CPUs"},
      {"nothing to count", {{"SLURM_JOB_NODELIST", "a"}}, "SLURM_JOB_CPUS_PER_NODE is not set"},
      {"tasks uncounted", {{"SLURM_JOB_NODELIST", "a"}, {"SLURM_NTASKS", "2"}}, "are not known"},
      {"more than a host may have",
       {{"SLURM_JOB_NODELIST", "a"}, {"SLURM_JOB_CPUS_PER_NODE", "70000"}},
       "70000 slots"},
      {"components", {{"SLURM_HET_SIZE", "9999999"}}, "is no number of components"},
      {"no component", {{"SLURM_HET_SIZE", "2"}}, "SLURM_JOB_NODELIST_HET_GROUP_0 is not"},
      {"no slot",
       {{"SLURM_JOB_NODELIST", "a"}, {"SLURM_NTASKS", "0"}, {"SLURM_TASKS_PER_NODE", "0"}},
       "gives no node a slot"},
  };
  for (const SlurmRow& row : rows) {
    World world{row.env};
    world.env["SLURM_JOB_ID"] = "7";
    const Result<std::optional<Allocation>> found = world.Find();
    ASSERT_FALSE(found.ok()) << row.what;
    EXPECT_THAT(found.status().message(), HasSubstr(row.text)) << row.what;
    EXPECT_THAT(found.status().message(), HasSubstr("--allocation never")) << row.what;
    EXPECT_LT(found.status().message().size(), 600U) << row.what;
  }
}

TEST(SlurmAllocation, IsNamedByItsJobAndGoesInBySrun) {
  World world{{{"SLURM_JOB_ID", "9"},
               {"SLURM_ARRAY_JOB_ID", "7"},
               {"SLURM_ARRAY_TASK_ID", "3"},
               {"SLURM_JOB_NODELIST", "n[1-6]"},
               {"SLURM_JOB_CPUS_PER_NODE", "1(x6)"}}};
  const Result<std::optional<Allocation>> found = world.Find();
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ(AllocationText(**found),
            "Slurm job 7_3 gives 6 slots (one per CPU) on 6 hosts: n1 to n6");
  EXPECT_EQ((*found)->access, (HostAccess{RemoteLauncher::kSrun, ""}));
  AllocationFacts facts = world.Facts();
  facts.has_program = [](const std::string&) { return false; };
  EXPECT_EQ((*FindAllocation(facts))->access, HostAccess()) << "a container without Slurm";
}

TEST(SlurmComponentOf, NamesTheComponentOfAHost) {
  const World world{{{"SLURM_HET_SIZE", "2"},
                     {"SLURM_JOB_NODELIST_HET_GROUP_0", "a"},
                     {"SLURM_JOB_NODELIST_HET_GROUP_1", "b[1-2]"}}};
  EXPECT_EQ(SlurmComponentOf(world.Facts().env, "b2"), 1U);
  EXPECT_EQ(SlurmComponentOf(world.Facts().env, "c"), std::nullopt);
  EXPECT_EQ(SlurmComponentOf(World{}.Facts().env, "a"), std::nullopt);
}

TEST(SrunInherits, LeavesOutWhatSrunWouldTakeForItsOptions) {
  for (const char* name : {"PATH", "SLURM_CONF", "SLURM_JOB_ID"}) EXPECT_TRUE(SrunInherits(name));
  for (const char* name : {"SLURM_NTASKS", "SLURM_GPUS_PER_TASK", "SRUN_CPUS_PER_TASK",
                           "SLURM_EXPORT_ENV", "SLURM_LABELIO", "SLURM_STEP_ID"})
    EXPECT_FALSE(SrunInherits(name)) << name;
}

TEST(Counts, AreOneForEachNode) {
  EXPECT_EQ(ParseCounts("4(x2),2", 3), (std::vector<uint32_t>{4, 4, 2}));
  for (const char* text : {"", "4", "4(x3)", "4(x2", "4(2),1", "4(x),1", ",4,4", "a,b", "-1,2"})
    EXPECT_EQ(ParseCounts(text, 2), std::nullopt) << text;
}

struct FileRow {
  const char* what;
  World world;
  const char* text;
};

TEST(OtherAllocations, GiveHostsAndSlots) {
  const FileRow rows[] = {
      {"nobody", {{{"JOB_ID", "1"}, {"SLURM_CONF", "x"}}}, "none"},
      {"LSF alone", {{{"LSB_JOBID", "5"}}}, "6 one per GPU, else per core: "},
      {"LSB_HOSTS", {{{"LSB_JOBID", "5"}, {"LSB_HOSTS", "h1 h1 h2"}}}, "3 one per task: h1:2,h2:1"},
      {"LSB_MCPU_HOSTS",
       {{{"LSB_JOBID", "5"}, {"LSB_HOSTS", "cut"}, {"LSB_MCPU_HOSTS", "h1 2 h2 1 "}}},
       "3 one per task: h1:2,h2:1"},
      {"the file of LSF",
       {{{"LSB_JOBID", "5"}, {"LSB_MCPU_HOSTS", "x 1"}, {"LSB_DJOB_HOSTFILE", "/f"}},
        {{"/f", "h1\nh2\nh1\n"}}},
       "3 one per task: h1:2,h2:1"},
      {"the launch node of CSM",
       {{{"LSB_JOBID", "5"}, {"CSM_ALLOCATION_ID", "1"}, {"LSB_DJOB_RANKFILE", "/f"}},
        {{"/f", "batch1\nh1\nh1\nh2\nh2\n"}}},
       "4 one per task: h1:2,h2:2"},
      {"PBS",
       {{{"PBS_JOBID", "5.s"}, {"PBS_NODEFILE", "/f"}}, {{"/f", "a\na\nb.x\n"}}},
       "3 one per task: a:2,b.x:1"},
      {"Grid Engine",
       {{{"PE_HOSTFILE", "/f"}}, {{"/f", "a 2 all.q@a UNDEFINED\nb 1 q <NULL>\n"}}},
       "3 one per slot of the queue: a:2,b:1"},
      {"the MPI Operator",
       {{{"K_MPI_JOB_ROLE", "launcher"}, {"OMPI_MCA_orte_default_hostfile", "/f"}},
        {{"/f", "w-0.w slots=2\nw-1.w slots=2\n"}}},
       "4 one per slot of the operator: w-0.w:2,w-1.w:2"},
      {"the operator for Intel MPI",
       {{{"KUBERNETES_SERVICE_HOST", "x"}, {"I_MPI_HYDRA_HOST_FILE", "/f"}}, {{"/f", "w-0.w:2\n"}}},
       "2 one per slot of the operator: w-0.w:2"},
      {"the same command on every node",
       {{{"HVD_NODES", "3"}, {"HVD_NODE_RANK", "0"}, {"HVD_LEADER", "a"}}},
       "18 as each node has them: localhost:6,node-1:6,node-2:6"},
      {"another node",
       {{{"HVD_NODES", "2"}, {"JOB_COMPLETION_INDEX", "1"}, {"HVD_LEADER", "j-0.j:1"}}},
       "12 as each node has them: localhost:6,j-1.j:6"},
      {"torchrun's variables",
       {{{"PET_NNODES", "1:2"},
         {"PET_NODE_RANK", "0"},
         {"PET_MASTER_ADDR", "job-node-0-0.job"},
         {"PET_NPROC_PER_NODE", "4"}}},
       "8 as each node has them: localhost:4,job-node-0-1.job:4"},
      {"the operator before torchrun's variables",
       {{{"K_MPI_JOB_ROLE", "launcher"},
         {"OMPI_MCA_orte_default_hostfile", "/f"},
         {"PET_NNODES", "2"}},
        {{"/f", "w-0.w slots=2\n"}}},
       "2 one per slot of the operator: w-0.w:2"},
      {"Volcano",
       {{{"KUBERNETES_SERVICE_HOST", "x"}, {"MPI_HOST", "w-0.j,w-1.j"}}},
       "2 one per host; --slots-per-host says more: w-0.j:1,w-1.j:1"},
      {"Volcano without its plug-in for MPI",
       {{{"KUBERNETES_SERVICE_HOST", "x"},
         {"HOSTNAME", "j-mpimaster-0"},
         {"VC_MPIMASTER_HOSTS", "j-mpimaster-0.j"},
         {"VC_MPIMASTER_NUM", "1"},
         {"VC_MPIWORKER_HOSTS", "w-0.j,w-1.j"},
         {"VC_MPIWORKER_NUM", "2"}}},
       "2 one per host; --slots-per-host says more: w-0.j:1,w-1.j:1"},
      {"a job of Volcano that was scaled",
       {{{"KUBERNETES_SERVICE_HOST", "x"}, {"VC_MPI_WORKER_HOSTS", "w-0.j"}},
        {{"/etc/volcano/mpi_worker.host", "w-0.j\nw-1.j"}}},
       "2 one per host; --slots-per-host says more: w-0.j:1,w-1.j:1"},
      {"a worker of Volcano",
       {{{"KUBERNETES_SERVICE_HOST", "x"},
         {"HOSTNAME", "j-worker-1"},
         {"VC_WORKER_HOSTS", "j-worker-0.j,j-worker-1.j"}}},
       "none"},
      {"workers of two kinds",
       {{{"KUBERNETES_SERVICE_HOST", "x"},
         {"VC_FASTWORKER_HOSTS", "f-0.j"},
         {"VC_SLOWWORKER_HOSTS", "s-0.j"}}},
       "none"},
      {"tasks of Volcano that are no workers",
       {{{"KUBERNETES_SERVICE_HOST", "x"},
         {"VC_PS_HOSTS", "p-0.j"},
         {"VC__HOSTS", "a"},
         {"VC_WORKER_HOSTS", ""}}},
       "none"},
      {"Volcano outside of a pod", {{{"VC_WORKER_HOSTS", "a,b"}}}, "none"},
      {"Volcano's variable outside of a pod", {{{"MPI_HOST", "a,b"}}}, "none"},
      {"Horovod's chart",
       {{{"KUBERNETES_SERVICE_HOST", "x"}},
        {{"/horovod/generated/hostfile", "n-driver slots=1\nn-0.n slots=2\n"}}},
       "3 one per slot of the chart: n-driver:1,n-0.n:2"},
      {"a host file of MPI outside of a pod",
       {{{"OMPI_MCA_orte_default_hostfile", "/f"}}, {{"/f", "a\n"}}},
       "none"},
  };
  for (const FileRow& row : rows) EXPECT_EQ(row.world.Text(), row.text) << row.what;
}

TEST(OtherAllocations, RefuseWhatWasCutOrChangedInOneSentence) {
  const FileRow rows[] = {
      {"LSB_MCPU_HOSTS", {{{"LSB_JOBID", "5"}, {"LSB_MCPU_HOSTS", "h1 2 h2"}}}, "has 'h2', which"},
      {"LSB_HOSTS", {{{"LSB_JOBID", "5"}, {"LSB_HOSTS", "-x"}}}, "has '-x'"},
      {"LSF's file", {{{"LSB_JOBID", "5"}, {"LSB_DJOB_HOSTFILE", "/f"}}}, "cannot be read"},
      {"empty",
       {{{"LSB_JOBID", "5"}, {"LSB_DJOB_HOSTFILE", "/f"}}, {{"/f", "\n"}}},
       "names no host"},
      {"no file of PBS", {{{"PBS_JOBID", "5"}}}, "PBS_NODEFILE is not"},
      {"PBS", {{{"PBS_NODEFILE", "/f"}}, {{"/f", "a b[1-3]\n"}}}, "has 'b[1-3]'"},
      {"Grid Engine", {{{"PE_HOSTFILE", "/f"}}, {{"/f", "a two q\n"}}}, "has 'a two q'"},
      {"Grid Engine, 0", {{{"PE_HOSTFILE", "/f"}}, {{"/f", "a 0 q\n"}}}, "has 'a'"},
      {"no rank and no leader", {{{"HVD_NODES", "2"}}}, "HVD_LEADER is not"},
      {"too high a rank",
       {{{"PET_NNODES", "2"}, {"PET_NODE_RANK", "2"}, {"PET_MASTER_ADDR", "a"}}},
       "PET_NODE_RANK=2 is not one of 2 nodes"},
      {"no leader", {{{"HVD_NODES", "2"}, {"HVD_NODE_RANK", "1"}}}, "HVD_LEADER is not"},
      {"no port",
       {{{"HVD_NODES", "2"}, {"HVD_NODE_RANK", "1"}, {"HVD_LEADER", "a:x"}}},
       "names no port"},
      {"the operator",
       {{{"K_MPI_JOB_ROLE", "launcher"}, {"HYDRA_HOST_FILE", "/f"}}, {{"/f", "a slots=x\n"}}},
       "line 1"},
      {"Volcano's number of hosts",
       {{{"KUBERNETES_SERVICE_HOST", "x"}, {"VC_WORKER_HOSTS", "w-0.j"}, {"VC_WORKER_NUM", "2"}}},
       "VC_WORKER_NUM of Volcano is 2, but VC_WORKER_HOSTS names 1"},
      {"Volcano's file",
       {{{"KUBERNETES_SERVICE_HOST", "x"}, {"VC_WORKER_HOSTS", "w-0.j"}},
        {{"/etc/volcano/worker.host", "-x\n"}}},
       "line 1"},
  };
  for (const FileRow& row : rows) {
    EXPECT_THAT(row.world.Text(), HasSubstr(row.text)) << row.what;
    EXPECT_THAT(row.world.Text(), HasSubstr("--allocation never")) << row.what;
  }
}

TEST(KubernetesAllocation, GoesInAsTheOperatorSays) {
  const World world{{{"K_MPI_JOB_ROLE", "launcher"},
                     {"OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh"},
                     {"OMPI_MCA_orte_default_hostfile", "/f"}},
                    {{"/f", "a slots=1\n"}}};
  EXPECT_EQ((*world.Find())->access, (HostAccess{RemoteLauncher::kAuto, "/etc/mpi/kubexec.sh"}));
}

TEST(KubernetesAllocation, KnowsTheSlotsOfNamesThatAScriptPrints) {
  const World world{{{"K_MPI_JOB_ROLE", "launcher"}, {"OMPI_MCA_orte_set_default_slots", "4"}}};
  EXPECT_EQ(SlotsOfOperator(world.Facts()), 4u);
  const World intel{{{"KUBERNETES_SERVICE_HOST", "x"}, {"I_MPI_PERHOST", "2"}}};
  EXPECT_EQ(SlotsOfOperator(intel.Facts()), 2u);
  const World outside{{{"I_MPI_PERHOST", "2"}}};
  EXPECT_EQ(SlotsOfOperator(outside.Facts()), std::nullopt);
}

TEST(KubernetesAllocation, KnowsTheSlotsOfNamesThatAScriptPrintsFromTheHostFile) {
  struct Row {
    const char* file;
    std::optional<uint32_t> slots;
  };
  for (const Row& row : {Row{"w-0.w:3\nw-1.w:3\n", 3},
                         {"w-0.w slots=2\nw-1.w slots=2\n", 2},
                         {"w-0.w slots=2\nw-1.w slots=3\n", std::nullopt},
                         {"w-0.w\nw-1.w\n", std::nullopt},
                         {"w-0.w slots=x\n", std::nullopt},
                         {"", std::nullopt}}) {
    const World mounted{{{"K_MPI_JOB_ROLE", "launcher"}}, {{"/etc/mpi/hostfile", row.file}}};
    EXPECT_EQ(SlotsOfOperator(mounted.Facts()), row.slots) << row.file;
    const World named{{{"K_MPI_JOB_ROLE", "launcher"}, {"HYDRA_HOST_FILE", "/f"}},
                      {{"/f", row.file}, {"/etc/mpi/hostfile", "w-0.w:9\n"}}};
    EXPECT_EQ(SlotsOfOperator(named.Facts()), row.slots) << row.file;
  }
  const World outside{{}, {{"/etc/mpi/hostfile", "w-0.w:3\n"}}};
  EXPECT_EQ(SlotsOfOperator(outside.Facts()), std::nullopt);
}

TEST(KubernetesAllocation, TheLauncherIsAWorkerUnderItsName) {
  const World pod{{{"K_MPI_JOB_ROLE", "launcher"}}};
  EXPECT_TRUE(IsThisPod(pod.Facts(), "train-launcher.train.ns.svc", "train-launcher"));
  EXPECT_FALSE(IsThisPod(pod.Facts(), "train-launcher-2.train.ns.svc", "train-launcher"));
  EXPECT_FALSE(IsThisPod(pod.Facts(), "train-worker-0.train.ns.svc", "train-launcher"));
  EXPECT_FALSE(IsThisPod(pod.Facts(), ".train", ""));
  const World outside;  // two machines of different domains may have one first label
  EXPECT_FALSE(IsThisPod(outside.Facts(), "a.x", "a"));
}

TEST(NodeGroup, KnowsWhereNode0Is) {
  struct Row {
    const char *leader, *host;
    uint16_t port;
  };
  for (const Row& row :
       {Row{"a", "a", kNodesPort}, Row{"a.b:70", "a.b", 70}, Row{"10.0.0.1:7", "10.0.0.1", 7},
        Row{"fd00::1", "fd00::1", kNodesPort}, Row{"[fd00::1]:8", "fd00::1", 8},
        Row{"[fd00::1]", "fd00::1", kNodesPort}}) {
    const World world{{{"HVD_NODES", "2"}, {"HVD_NODE_RANK", "1"}, {"HVD_LEADER", row.leader}}};
    const Result<std::optional<NodeGroup>> group = FindNodeGroup(world.Facts());
    ASSERT_TRUE(group.ok() && *group) << row.leader;
    EXPECT_EQ((*group)->leader, row.host);
    EXPECT_EQ((*group)->port, row.port);
    EXPECT_EQ((*group)->rank, 1u);
  }
  EXPECT_EQ(
      (*World{{{"HVD_NODES", "2"}, {"HVD_NODE_RANK", "0"}, {"HVD_LEADER", "a"}}}.Find())->access,
      (HostAccess{RemoteLauncher::kNodes, ""}));
}

Settings OfNodes(const std::string& nnodes, int rank, const std::string& leader) {
  Settings settings;
  settings.nnodes = nnodes;
  settings.node_rank = rank;
  settings.master_addr = leader;
  return settings;
}

World WithOptions(const Settings& settings, Env env = {}) {
  env.merge(OptionFacts(settings));
  return {std::move(env)};
}

TEST(NodeGroup, OptionsComeBeforeVariablesAndSchedulers) {
  Settings settings = OfNodes("2", 1, "a");
  settings.master_port = 29500;
  settings.slots_per_host = 4;
  const World world =
      WithOptions(settings, {{"SLURM_JOB_ID", "7"}, {"PET_NNODES", "3"}, {"HVD_NODES", "4"}});
  EXPECT_EQ(world.Text(), "8 as each node has them: localhost:4,node-1:4");
  const Result<std::optional<NodeGroup>> group = FindNodeGroup(world.Facts());
  ASSERT_TRUE(group.ok() && *group);
  EXPECT_EQ((*group)->rank, 1u);
  EXPECT_EQ((*group)->leader, "a");
  EXPECT_EQ((*group)->port, 29500);
  EXPECT_EQ((*group)->said_by, "--nnodes=2");
  EXPECT_EQ(WithOptions(OfNodes("1", -1, "")).Text(), "none");
}

TEST(NodeGroup, AllProcessesAreSharedByTheNodes) {
  Settings settings = OfNodes("2", 0, "a:29400");
  settings.num_proc = 5;
  EXPECT_EQ(WithOptions(settings).Text(), "6 as each node has them: localhost:3,node-1:3");
}

TEST(NodeGroup, TheSchedulerKnowsTheRankOfATask) {
  const World world = WithOptions(OfNodes("2", -1, "a"), {{"SLURM_NODEID", "1"}});
  EXPECT_EQ((*FindNodeGroup(world.Facts()))->rank, 1u);
}

TEST(NodeGroup, NobodyNeedSayWhichNodeThisIs) {
  const World world = WithOptions(OfNodes("2", -1, "a:29400"));
  const Result<std::optional<NodeGroup>> group = FindNodeGroup(world.Facts());
  ASSERT_TRUE(group.ok() && *group);
  EXPECT_EQ((*group)->rank, std::nullopt);
  EXPECT_EQ((*group)->leader, "a");
  EXPECT_EQ(world.Text(), "12 as each node has them: localhost:6,node-1:6");
}

// As the training operator of Kubeflow sets them for an elastic PyTorchJob.
TEST(NodeGroup, TorchrunsEndpointIsTheLeader) {
  const World world{{{"PET_NNODES", "1:3"},
                     {"PET_RDZV_BACKEND", "c10d"},
                     {"PET_RDZV_ENDPOINT", "job-worker-0:23456"},
                     {"PET_NPROC_PER_NODE", "2"}}};
  const Result<std::optional<NodeGroup>> group = FindNodeGroup(world.Facts());
  ASSERT_TRUE(group.ok() && *group);
  EXPECT_EQ((*group)->leader, "job-worker-0");
  EXPECT_EQ((*group)->port, 23456);
  EXPECT_EQ((*group)->rank, std::nullopt);
  const World both{{{"PET_NNODES", "2"}, {"PET_RDZV_ENDPOINT", "a:1"}, {"PET_MASTER_ADDR", "b"}}};
  EXPECT_EQ((*FindNodeGroup(both.Facts()))->leader, "b");
}

TEST(NodeGroup, ARangeOfNodesIsAnElasticJob) {
  const auto least = [](const World& world) {
    const Allocation allocation = **world.Find();
    return allocation.least_hosts * *allocation.hosts.front().slots;
  };
  EXPECT_EQ(least(WithOptions(OfNodes("2:4", 0, "a"))), 12u);
  EXPECT_EQ(least(WithOptions(OfNodes("4:4", 0, "a"))), 0u);
  EXPECT_EQ(least(WithOptions(OfNodes("4", 0, "a"))), 0u);
  EXPECT_EQ(least(World{{{"PET_NNODES", "1:2"},
                         {"PET_NODE_RANK", "0"},
                         {"PET_MASTER_ADDR", "a"},
                         {"PET_NPROC_PER_NODE", "4"}}}),
            4u);
}

TEST(NodeGroup, OptionsThatDoNotFitAreOneSentence) {
  EXPECT_EQ(WithOptions(OfNodes("2", 0, "")).Text(),
            "--nnodes=2 is set and --master-addr is not, so node 0 cannot be found; say on each "
            "node which one leads, or start the command once with all hosts: -H a:4,b:4");
  EXPECT_EQ(WithOptions(OfNodes("2", 2, "a")).Text(), "--node-rank=2 is not one of 2 nodes");
  for (const char* nodes : {"many", "0", "4:2", "1:", ":2", "1:2:3"}) {
    EXPECT_EQ(WithOptions(OfNodes(nodes, 0, "a")).Text(),
              "--nnodes=" + std::string(nodes) + " is not a number of nodes");
  }
}

TEST(NodeGroup, OneNodeNeedsNoOther) {
  const World world{{{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "3"}}};
  EXPECT_TRUE((*world.Find())->hosts.empty());
  EXPECT_EQ((*world.Find())->slots, 3u);
}

TEST(NodeGroup, HasAKeyOrASentence) {
  NodeGroup group;
  group.said_by = "HVD_NODES=2";
  const World none;
  EXPECT_THAT(NodeKeyText(none.Facts(), group).status().message(), HasSubstr("openssl rand"));
  const World short_one{{{"HVD_JOB_KEY_FILE", "/k"}}, {{"/k", "abc\n"}}};
  EXPECT_THAT(NodeKeyText(short_one.Facts(), group).status().message(), HasSubstr("3 bytes"));
  const World good{{{"HVD_JOB_KEY_FILE", "/k"}}, {{"/k", "0123456789abcdef\n"}}};
  EXPECT_EQ(*NodeKeyText(good.Facts(), group), "0123456789abcdef");
}

std::string NodesNow(std::string_view text) {
  HostSpec a, b;
  a.name = "n1";
  a.slots = 4;
  b.name = "n2";
  b.slots = 2;
  const Result<std::vector<HostSpec>> hosts = ReadSlurmJob(text, "7", {a, b});
  return hosts.ok() ? HostListText(*hosts) : hosts.status().message();
}

TEST(SlurmJob, ANodeKeepsItsSlotsAndANewOneHasThoseOfTheFirst) {
  EXPECT_EQ(NodesNow("JobId=7 JobName=x JobState=RUNNING ReqNodeList=(null) NodeList=n[1-2]\n"),
            "n1:4,n2:2");
  EXPECT_EQ(NodesNow("JobId=7 JobState=RUNNING ExcNodeList=n9 NodeList=n2,n5 BatchHost=n2"),
            "n2:2,n5:4");
}

TEST(SlurmJob, OtherJobsAreNotRead) {
  EXPECT_EQ(NodesNow("JobId=8 ArrayJobId=7 JobState=RUNNING NodeList=n9\n"
                     "JobId=7 ArrayJobId=7 JobState=RUNNING NodeList=n1\n"),
            "n1:4");
  EXPECT_EQ(NodesNow("JobId=7 HetJobId=7 JobState=RUNNING NodeList=n1\n"
                     "JobId=8 HetJobId=7 JobState=RUNNING NodeList=n2\n"),
            "n1:4,n2:2");
}

TEST(SlurmJob, WhatTellsNoNodesIsOneSentence) {
  EXPECT_EQ(NodesNow(""), "it tells no nodes of job 7");
  EXPECT_EQ(NodesNow("JobId=77 JobState=RUNNING NodeList=n1"), "it tells no nodes of job 7");
  EXPECT_EQ(NodesNow("JobId=7 JobState=CANCELLED NodeList=n1"),
            "it tells no nodes of job 7, which is CANCELLED");
  EXPECT_EQ(NodesNow("JobId=7 JobState=PENDING NodeList=(null)"),
            "it tells no nodes of job 7, which is PENDING");
  EXPECT_THAT(NodesNow("JobId=7 JobState=RUNNING NodeList=n[1-"),
              HasSubstr("NodeList=n[1- is no list of nodes: "));
  EXPECT_THAT(NodesNow("JobId=7 JobState=RUNNING NodeList=n[1-999999]"),
              HasSubstr("is no list of nodes: "));
}

TEST(SlurmJob, OnlyANumberIsAskedFor) {
  EXPECT_EQ(SlurmJobCommand("4711"), "scontrol --oneliner show job 4711");
  for (const char* id : {"", "7;reboot", "7 8", "-1"}) EXPECT_EQ(SlurmJobCommand(id), "") << id;
}

TEST(CheckOneTask, RefusesOneOfManyTasks) {
  const FileRow rows[] = {
      {"srun",
       {{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}}},
       "task 3 of the 4 that srun started"},
      {"mpirun",
       {{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}},
       "mpirun started"},
      {"jsrun", {{{"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "2"}}}, "jsrun started"},
      {"hydra", {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}}, "mpirun started"},
  };
  for (const FileRow& row : rows)
    EXPECT_THAT(CheckOneTask(row.world.Facts()).message(), HasSubstr(row.text)) << row.what;
  const World none[] = {
      {{}},
      {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}},
      {{{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "0"},
        {"SLURM_STEP_NUM_TASKS", "4"},
        {"SLURM_PTY_PORT", "1"}}},
      {{{"SLURM_STEP_ID", "4294967291"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}},
  };
  for (const World& world : none) EXPECT_TRUE(CheckOneTask(world.Facts()).ok());
}

}  // namespace
}  // namespace hvd
