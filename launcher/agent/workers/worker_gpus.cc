#include "launcher/agent/workers/worker_gpus.h"

#include <string_view>

#include "launcher/agent/environment/worker_env.h"

namespace hvd {

namespace {

bool AskedFor(const StartJob& start) {
  return start.share.gpus != GpuVisibility::kAll || start.share.bind_to == BindTo::kGpu;
}

}  // namespace

std::vector<GpuDevice> GpusFor(const StartJob& start) {
  return AskedFor(start) ? GpusOfThisHost() : std::vector<GpuDevice>();
}

std::vector<std::string> SharedGpus(const StartJob& start, const std::vector<GpuDevice>& devices) {
  if (!AskedFor(start)) return {};
  const std::optional<std::string> chosen = ChosenGpus(WorkerEnvironment(start, 0, {}, {}, {}));
  return PartOfMachine(VisibleGpus(chosen, devices), start.share.part, start.share.parts);
}

GpuAssignment AssignGpus(const StartJob& start, const std::vector<std::string>& shared,
                         const std::vector<GpuDevice>& devices) {
  if (start.share.gpus == GpuVisibility::kAll) return {};
  if (start.share.gpus == GpuVisibility::kOne) return GpuAssignment(shared);
  return GpuAssignment(shared, NodesOfGpus(shared, devices));
}

std::optional<std::string> ChosenGpus(const std::vector<std::string>& environment) {
  constexpr std::string_view kEntry = "CUDA_VISIBLE_DEVICES=";
  for (const std::string& entry : environment) {
    if (entry.starts_with(kEntry)) return entry.substr(kEntry.size());
  }
  return std::nullopt;
}

}  // namespace hvd
