// A libnvidia-ml.so.1 for machines without a GPU. HVD_FAKE_NVML says what it plays, in words:
//   gpus=2 driver=580.65.06 cuda=13000     of the host; "hang", "die", "refuse": when it begins
//   ecc1=3 reset1 broken1 slowed0=72 process0=4711 mode1=2 divided1    of a GPU, by its number
//   nvlink                                 between all pairs; without it they are on two sockets
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "launcher/agent/gpu/nvml_api.h"

namespace {

using hvd::nvml::Device;
using hvd::nvml::kSuccess;
using hvd::nvml::Return;

const char* Played() {
  const char* played = std::getenv("HVD_FAKE_NVML");
  return played == nullptr ? "" : played;
}

// The value of a word; "1" of one without; nullptr-like empty text where it is not there.
std::string Word(const std::string& name) {
  std::istringstream words(Played());
  for (std::string word; words >> word;) {
    if (word == name) return "1";
    if (word.compare(0, name.size() + 1, name + "=") == 0) return word.substr(name.size() + 1);
  }
  return "";
}

unsigned long long Number(const std::string& name) {
  return std::strtoull(Word(name).c_str(), nullptr, 10);
}

size_t IndexOf(Device device) { return reinterpret_cast<size_t>(device) - 1; }

unsigned long long Of(Device device, const char* name) {
  return Number(name + std::to_string(IndexOf(device)));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Return nvmlInit_v2() {
  while (!Word("hang").empty()) ::sleep(1);
  if (!Word("die").empty()) std::abort();
  return Word("refuse").empty() ? kSuccess : hvd::nvml::kUnknown;
}
Return nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(Return) { return "Unknown Error"; }
Return nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "%s", Word("driver").c_str());
  return kSuccess;
}
Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = static_cast<int>(Number("cuda"));
  return kSuccess;
}
Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(Number("gpus"));
  return kSuccess;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (!Word("lost" + std::to_string(index)).empty()) return hvd::nvml::kUnknown;
  *device = reinterpret_cast<Device>(size_t{index} + 1);
  return kSuccess;
}
Return nvmlDeviceGetName(Device, char* text, unsigned size) {
  std::snprintf(text, size, "NVIDIA H100 80GB HBM3");
  return kSuccess;
}
Return nvmlDeviceGetMemoryInfo(Device, hvd::nvml::Memory* memory) {
  *memory = {81559ULL << 20, 81000ULL << 20, 559ULL << 20};
  return kSuccess;
}
Return nvmlDeviceGetTotalEccErrors(Device device, int type, int counter,
                                   unsigned long long* errors) {
  if (type != hvd::nvml::kUncorrected || counter != hvd::nvml::kSinceLoad)
    return hvd::nvml::kUnsupported;
  *errors = Of(device, "ecc");
  return kSuccess;
}
Return nvmlDeviceGetRemappedRows(Device device, unsigned* corrected, unsigned* uncorrected,
                                 unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = 0;
  *pending = static_cast<unsigned>(Of(device, "reset"));
  *failed = static_cast<unsigned>(Of(device, "broken"));
  return kSuccess;
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  *reasons = Of(device, "slowed");
  return kSuccess;
}
Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count,
                                               hvd::nvml::Process* processes) {
  const auto pid = static_cast<unsigned>(Of(device, "process"));
  *count = pid == 0 ? 0 : 1;
  if (pid != 0) processes[0] = {pid, 1ULL << 30, ~0U, ~0U};
  return kSuccess;
}
Return nvmlDeviceGetComputeMode(Device device, int* mode) {
  *mode = static_cast<int>(Of(device, "mode"));
  return kSuccess;
}
Return nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  *current = *pending = static_cast<unsigned>(Of(device, "divided"));
  return kSuccess;
}
Return nvmlDeviceGetP2PStatus(Device, Device, int capability, int* status) {
  *status = capability == hvd::nvml::kNvlink && !Word("nvlink").empty() ? hvd::nvml::kLinkOk : 1;
  return kSuccess;
}
Return nvmlDeviceGetTopologyCommonAncestor(Device, Device, int* level) {
  *level = 50;  // nothing nearer than the links between sockets
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
