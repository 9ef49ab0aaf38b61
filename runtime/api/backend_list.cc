#include "runtime/api/backend_list.h"

#include <algorithm>

#include "runtime/backends/cuda/cuda_plugin.h"

namespace hvd {
namespace {

int32_t OfCudaPlugin(const char* what) {
  const Result<CudaPlugin> plugin = LoadCudaPlugin();
  return plugin.ok() ? plugin->can_load(what) : 0;
}

constexpr BackendRow kRows[] = {
    {.name = "shm",
     .built = [] { return int32_t{1}; },
     .used = [](const BackendFacts&) { return true; }},
    {.name = "gloo",
     .built = [] { return int32_t{CanOpenInterHostComm()}; },
     .used = [](const BackendFacts& facts) { return facts.several_hosts && !facts.over_mpi; },
     .connects = [](const BackendFacts& facts) { return !facts.over_mpi; },
     .open =
         [](const InterHostOpening& opening) {
           return OpenInterHostComm(opening.options, opening.directory);
         }},
    {.name = "mpi",
     .built = [] { return int32_t{LoadMpiPlugin().ok()}; },
     .used = [](const BackendFacts& facts) { return facts.over_mpi || facts.mpi_beside; },
     .connects = [](const BackendFacts& facts) { return facts.over_mpi; },
     .open = [](const InterHostOpening& opening) { return opening.mpi->OpenInterHostComm(); }},
    {.name = "mpi_threads",
     .built = [] { return int32_t{0}; },
     .used = [](const BackendFacts& facts) { return facts.mpi_threads; }},
    {.name = "cuda",
     .built = [] { return OfCudaPlugin("cuda"); },
     .used = [](const BackendFacts& facts) { return facts.cuda; }},
    {.name = "nccl",
     .built = [] { return OfCudaPlugin("nccl"); },
     .used = [](const BackendFacts& facts) { return facts.nccl; }},
};

}  // namespace

std::span<const BackendRow> BackendRows() { return kRows; }

const BackendRow* FindBackend(std::string_view name) {
  const auto* row = std::ranges::find(kRows, name, &BackendRow::name);
  return row == std::end(kRows) ? nullptr : row;
}

const BackendRow* InterHostBackend(const BackendFacts& facts) {
  if (!facts.several_hosts) return nullptr;
  const auto* row = std::ranges::find_if(kRows, [&facts](const BackendRow& candidate) {
    return candidate.connects != nullptr && candidate.connects(facts);
  });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace hvd
