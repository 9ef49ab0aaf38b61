// Any environment and files of a scheduler: hosts within their limits, or one sentence; never a
// crash. The input is lines "NAME=value"; the text after an empty line is every file.
#include <map>

#include "discovery/allocations/find_allocation.h"
#include "discovery/allocations/kubernetes_allocation.h"
#include "discovery/allocations/slurm_allocation.h"
#include "discovery/allocations/slurm_job.h"
#include "discovery/allocations/task_check.h"
#include "discovery/host_item.h"
#include "discovery/host_range.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

struct World {
  std::map<std::string, std::string> env;
  std::string file;
};

World Read(std::string_view text) {
  World world;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) break;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    world.env.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  world.file = std::string(text);
  return world;
}

bool IsOneSentence(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  WriteSeeds(*argc, *argv,
             {"SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=n[01-3,7],x[1-2]-y[0-1]\n"
              "SLURM_JOB_CPUS_PER_NODE=4(x8)\n",
              "SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=a,b\nSLURM_NTASKS=3\nSLURM_TASKS_PER_NODE=2,1\n",
              "SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=a\nSLURM_GPUS_PER_NODE=a100:4(S:0)\n",
              "SLURM_JOB_ID=7\nSLURM_HET_SIZE=2\nSLURM_JOB_NODELIST_HET_GROUP_0=a\n"
              "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0=4\nSLURM_JOB_NODELIST_HET_GROUP_1=b\n"
              "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1=4\n",
              "SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=a,b\nSLURM_STEP_ID=0\nSLURM_PROCID=0\n"
              "SLURM_STEP_NUM_TASKS=1\nSLURM_PTY_PORT=1\nSLURM_JOB_CPUS_PER_NODE=2(x2)\n",
              "A=b\n\nJobId=7 JobState=RUNNING ReqNodeList=(null) NodeList=n[1-2,5],x\n",
              "LSB_JOBID=1\nLSB_MCPU_HOSTS=a 2 b 1\n", "LSB_JOBID=1\nLSB_HOSTS=a a b\n",
              "LSB_JOBID=1\nCSM_ALLOCATION_ID=1\nCSM_ALLOCATION_QUERY=none\n"
              "LSB_DJOB_HOSTFILE=f\n\nbatch1\na\na\n",
              "LSB_JOBID=1\nCSM_ALLOCATION_ID=1\n\ncompute_nodes: [a, b]\n"
              "Record_1:\n  discovered_gpus: 4\n",
              "PBS_JOBID=1\nPBS_NODEFILE=f\n\na\na\nb\n",
              "PE_HOSTFILE=f\n\na 2 q UNDEFINED\nb 1 q <NULL>\n",
              "K_MPI_JOB_ROLE=launcher\nOMPI_MCA_orte_default_hostfile=f\n\na slots=2\nb:1\n",
              "KUBERNETES_SERVICE_HOST=x\nHOSTNAME=j-master-0\nVC_MASTER_HOSTS=j-master-0.j\n"
              "VC_WORKER_HOSTS=j-worker-0.j,j-worker-1.j\nVC_WORKER_NUM=2\n"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const World world = Read({reinterpret_cast<const char*>(data), size});
  const AllocationFacts facts = {
      [&](const char* name) -> std::optional<std::string> {
        const auto found = world.env.find(name);
        if (found == world.env.end()) return std::nullopt;
        return found->second;
      },
      [&](const std::string&) -> Result<std::string> { return world.file; },
      [](const std::string& program) { return program != "none"; },
      [] { return 4U; },
      [&](const std::vector<std::string>&) -> Result<std::string> { return world.file; },
      [&] {
        std::vector<std::string> names;
        for (const auto& [name, value] : world.env) names.push_back(name);
        return names;
      }};
  const Result<std::vector<HostSpec>> now = ReadSlurmJob(world.file, "7", {});
  Must(now.ok() ? !now->empty() && now->size() <= kMaxHosts
                : IsOneSentence(now.status().message()));
  const Status task = CheckOneTask(facts);
  Must(task.ok() || IsOneSentence(task.message()));
  Must(SlotsOfOperator(facts).value_or(1) >= 1);
  const Result<std::optional<Allocation>> found = FindAllocation(facts);
  if (!found.ok()) {
    Must(IsOneSentence(found.status().message()));
    return 0;
  }
  if (!*found) return 0;
  Must(IsOneSentence(AllocationText(**found)) && (*found)->hosts.size() <= kMaxHosts);
  for (const HostSpec& host : (*found)->hosts) {
    Must(!host.name.empty() && host.name.front() != '-');
    Must(host.slots && *host.slots >= 1 && *host.slots <= kMaxSlots);
    SlurmComponentOf(facts.env, host.name);
    break;
  }
  Must((*found)->hosts.empty() || ParseHostList(HostListText((*found)->hosts)).ok());
  return 0;
}
