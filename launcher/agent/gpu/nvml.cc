#include "launcher/agent/gpu/nvml.h"

#include <dlfcn.h>

#include <array>

#include "launcher/agent/gpu/nvml_api.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using nvml::Device;
using nvml::kSuccess;
using nvml::Return;

constexpr size_t kText = 96;

// A loaded library. Functions that it lacks return kUnsupported.
class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}

  template <typename... Args>
  Return operator()(const char* name, Args... args) const {
    auto* function = reinterpret_cast<Return (*)(Args...)>(::dlsym(handle_, name));
    return function == nullptr ? nvml::kUnsupported : function(args...);
  }

  std::string ErrorText(Return code) const {
    auto* error_string =
        reinterpret_cast<const char* (*)(Return)>(::dlsym(handle_, "nvmlErrorString"));
    return error_string == nullptr ? Format("error {}", code) : error_string(code);
  }

 private:
  void* const handle_;
};

std::string TextOf(const std::array<char, kText>& text) { return text.data(); }

std::vector<std::string> Slowed(unsigned long long reasons) {
  std::vector<std::string> slowed;
  if ((reasons & (nvml::kSoftwareHeat | nvml::kHardwareHeat)) != 0) slowed.emplace_back("heat");
  if ((reasons & nvml::kPowerBrake) != 0) slowed.emplace_back("the power supply's brake");
  const bool by_heat = !slowed.empty();
  if ((reasons & nvml::kHardware) != 0 && !by_heat) slowed.emplace_back("its hardware");
  return slowed;
}

std::vector<uint32_t> ProcessesOn(const Library& nvml, Device device) {
  std::array<nvml::Process, 64> room{};
  unsigned count = room.size();
  if (nvml("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, room.data()) != kSuccess)
    return {};
  std::vector<uint32_t> processes;
  for (unsigned i = 0; i < count && i < room.size(); ++i) processes.push_back(room[i].pid);
  return processes;
}

void AskMemory(const Library& nvml, Device device, GpuState* state) {
  nvml::Memory memory{};
  if (nvml("nvmlDeviceGetMemoryInfo", device, &memory) == kSuccess)
    state->memory_mib = memory.total >> 20;
  unsigned long long errors = 0;
  if (nvml("nvmlDeviceGetTotalEccErrors", device, nvml::kUncorrected, nvml::kSinceLoad, &errors) ==
      kSuccess)
    state->ecc_errors = errors;
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (nvml("nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &pending, &failed) ==
      kSuccess) {
    state->needs_reset = pending != 0;
    state->broken_memory = failed != 0;
  }
}

GpuState StateOf(const Library& nvml, Device device) {
  GpuState state;
  std::array<char, kText> name{};
  if (nvml("nvmlDeviceGetName", device, name.data(), unsigned{kText}) == kSuccess)
    state.name = TextOf(name);
  AskMemory(nvml, device, &state);
  unsigned long long reasons = 0;
  if (nvml("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons) == kSuccess)
    state.slowed = Slowed(reasons);
  int mode = 0;
  if (nvml("nvmlDeviceGetComputeMode", device, &mode) == kSuccess) {
    state.prohibited = mode == nvml::kProhibited;
    state.exclusive = mode == nvml::kExclusiveProcess;
  }
  unsigned divided = 0, after_reset = 0;
  if (nvml("nvmlDeviceGetMigMode", device, &divided, &after_reset) == kSuccess)
    state.divided = divided != 0;
  state.processes = ProcessesOn(nvml, device);
  return state;
}

std::string KindOf(const Library& nvml, Device from, Device to) {
  int status = -1;
  if (nvml("nvmlDeviceGetP2PStatus", from, to, nvml::kNvlink, &status) == kSuccess &&
      status == nvml::kLinkOk)
    return "NVLink";
  int level = 0;
  if (nvml("nvmlDeviceGetTopologyCommonAncestor", from, to, &level) != kSuccess) return "";
  if (level <= nvml::kSwitches) return "PCI switch";
  if (level <= nvml::kHostBridge) return "host bridge";
  return level <= nvml::kNumaNode ? "NUMA node" : "between sockets";
}

void AskLinks(const Library& nvml, const std::vector<Device>& devices, GpuReport* report) {
  for (uint32_t from = 0; from < devices.size(); ++from) {
    for (uint32_t to = from + 1; to < devices.size(); ++to) {
      std::string kind = KindOf(nvml, devices[from], devices[to]);
      if (!kind.empty()) report->links.push_back({from, to, std::move(kind)});
    }
  }
}

void AskDriver(const Library& nvml, GpuReport* report) {
  std::array<char, kText> driver{};
  if (nvml("nvmlSystemGetDriverVersion", driver.data(), unsigned{kText}) == kSuccess)
    report->driver = TextOf(driver);
  int cuda = 0;
  if (nvml("nvmlSystemGetCudaDriverVersion_v2", &cuda) == kSuccess && cuda > 0)
    report->cuda = Format("{}.{}", cuda / 1000, cuda % 1000 / 10);
}

void AskDevices(const Library& nvml, GpuReport* report) {
  unsigned count = 0;
  if (const Return code = nvml("nvmlDeviceGetCount_v2", &count); code != kSuccess) {
    report->trouble = "the driver does not count its GPUs: " + nvml.ErrorText(code);
    return;
  }
  std::vector<Device> devices;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (const Return code = nvml("nvmlDeviceGetHandleByIndex_v2", i, &device); code != kSuccess) {
      report->trouble = Format("GPU {} does not answer: {}", i, nvml.ErrorText(code));
      continue;
    }
    devices.push_back(device);
    report->gpus.push_back(StateOf(nvml, device));
  }
  AskLinks(nvml, devices, report);
}

std::string Listed(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& word : list) text += (text.empty() ? "" : " and ") + word;
  return text;
}

}  // namespace

GpuReport AskNvml(const char* library) {
  GpuReport report;
  // Never closed: not all of the driver's libraries survive that.
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    report.trouble = Format("the driver's {} cannot be loaded: {}", library, ::dlerror());
    return report;
  }
  const Library nvml(handle);
  if (const Return code = nvml("nvmlInit_v2"); code != kSuccess) {
    report.trouble = "the driver does not answer: " + nvml.ErrorText(code);
    return report;
  }
  AskDriver(nvml, &report);
  AskDevices(nvml, &report);
  (void)nvml("nvmlShutdown");
  return report;
}

std::vector<std::string> GpuFacts(const GpuReport& report) {
  std::vector<std::string> facts;
  if (!report.driver.empty()) facts.push_back("gpu.driver=" + report.driver);
  if (!report.cuda.empty()) facts.push_back("gpu.cuda=" + report.cuda);
  for (size_t i = 0; i < report.gpus.size(); ++i) {
    const GpuState& gpu = report.gpus[i];
    const auto note = [&](const char* key, const std::string& value) {
      facts.push_back(Format("gpu.{}={} {}", key, i, value));
    };
    facts.push_back(Format("gpu={} {} MiB", gpu.name, gpu.memory_mib));
    if (gpu.ecc_errors.value_or(0) > 0) note("ecc", std::to_string(*gpu.ecc_errors));
    if (gpu.broken_memory)
      note("memory", "broken");
    else if (gpu.needs_reset)
      note("memory", "reset");
    if (!gpu.slowed.empty()) note("slowed", Listed(gpu.slowed));
    for (const uint32_t pid : gpu.processes) note("process", std::to_string(pid));
    if (gpu.prohibited) note("mode", "prohibited");
    if (gpu.exclusive) note("mode", "exclusive");
    if (gpu.divided) note("divided", "yes");
  }
  for (const GpuLink& link : report.links)
    facts.push_back(Format("gpu.link={} {} {}", link.from, link.to, link.kind));
  if (!report.trouble.empty()) facts.push_back("gpu.trouble=" + report.trouble);
  facts.emplace_back("gpu.said=1");
  return facts;
}

}  // namespace hvd
