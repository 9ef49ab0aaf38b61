// Any environment of a process that calls hvd.init(): a place within a world, or one sentence;
// never a crash. The input is lines "NAME=value"; a \r in a value stands for a line break.
#include <algorithm>
#include <map>

#include "runtime/bootstrap/launcher_detection.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;

std::map<std::string, std::string> ReadEnvironment(std::string_view text) {
  std::map<std::string, std::string> env;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
      std::string value(line.substr(equals + 1));
      std::ranges::replace(value, '\r', '\n');
      env.emplace(line.substr(0, equals), std::move(value));
    }
  }
  return env;
}

// MPI alone may know of ranks that the environment does not tell of: then the size is 0.
void CheckPlace(const ExternalRank& rank) {
  Must(!rank.launcher.empty() && (rank.size > 0 || rank.over_mpi));
  if (rank.size == 0) return;
  Must(rank.rank < rank.size && rank.local_rank < rank.local_size && rank.local_size <= rank.size);
  Must(rank.over_mpi || !rank.store.empty() || rank.local_size == rank.size);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  WriteSeeds(*argc, *argv,
             {"HVD_AGENT=a\nHVD_SLOT=1\nHVD_JOB_KEY=k\nHOROVOD_SIZE=2\n",
              "HOROVOD_RANK=1\nHOROVOD_SIZE=2\nHOROVOD_LOCAL_RANK=0\nHOROVOD_LOCAL_SIZE=1\n"
              "HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1\nHOROVOD_GLOO_RENDEZVOUS_PORT=4000\n",
              "OMPI_COMM_WORLD_RANK=2\nOMPI_COMM_WORLD_SIZE=4\nOMPI_COMM_WORLD_LOCAL_RANK=0\n"
              "OMPI_COMM_WORLD_LOCAL_SIZE=2\nPMIX_NAMESPACE=7\nHOROVOD_CONTROLLER=mpi\n",
              "SLURM_JOB_ID=7\nSLURM_STEP_ID=0\nSLURM_PROCID=1\nSLURM_STEP_NUM_TASKS=6\n"
              "SLURM_LOCALID=1\nSLURM_NODEID=0\nSLURM_STEP_TASKS_PER_NODE=2(x2),2\n"
              "SLURMD_NODENAME=n1\n",
              "TORCHELASTIC_RUN_ID=r\nRANK=1\nWORLD_SIZE=2\nLOCAL_RANK=1\nLOCAL_WORLD_SIZE=2\n",
              "PMI_RANK=0\nPMI_SIZE=2\nMPI_LOCALRANKID=0\nMPI_LOCALNRANKS=2\nPMI_FD=6\n",
              "HOROVOD_CPU_OPERATIONS=mpi\nHOROVOD_ELASTIC=1\n"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto env = ReadEnvironment({reinterpret_cast<const char*>(data), size});
  const Result<DetectedLaunch> found =
      DetectLaunch([&](const char* name) -> std::optional<std::string> {
        const auto entry = env.find(name);
        return entry == env.end() ? std::nullopt : std::optional(entry->second);
      });
  if (!found.ok()) {
    const std::string& sentence = found.status().message();
    Must(!sentence.empty() && sentence.find('\n') == std::string::npos);
  } else if (const auto* rank = std::get_if<ExternalRank>(&*found)) {
    CheckPlace(*rank);
  }
  return 0;
}
