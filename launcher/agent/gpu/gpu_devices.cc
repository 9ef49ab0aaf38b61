#include "launcher/agent/gpu/gpu_devices.h"

#include <algorithm>
#include <filesystem>

#include "discovery/words.h"
#include "launcher/process/proc_file.h"
#include "runtime/base/test_env.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

// In a container the driver may list GPUs of which it has no device file.
bool CanBeOpened(const std::string& root, const std::string& information) {
  const std::string minor = InformationOf(information, "Device Minor");
  std::error_code error;
  return minor.empty() || fs::exists(root + "/dev/nvidia" + minor, error);
}

}  // namespace

std::string InformationOf(std::string_view information, std::string_view key) {
  while (!information.empty()) {
    const size_t end = std::min(information.find('\n'), information.size());
    const std::string_view line = information.substr(0, end);
    if (line.starts_with(key) && line.substr(key.size()).starts_with(':'))
      return std::string(Trimmed(line.substr(key.size() + 1)));
    information.remove_prefix(std::min(end + 1, information.size()));
  }
  return "";
}

std::vector<GpuDevice> GpusOfThisHost() {
  return GpusBelow(GetTestEnv("HVD_TEST_GPU_HOST").value_or(""));
}

std::vector<GpuDevice> GpusBelow(const std::string& root) {
  std::vector<GpuDevice> devices;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root + "/proc/driver/nvidia/gpus", error)) {
    const std::string information = ReadSmallFile(entry.path() / "information");
    if (!CanBeOpened(root, information)) continue;
    GpuDevice device{entry.path().filename(), InformationOf(information, "GPU UUID"), -1};
    const std::string node =
        ReadSmallFile(root + "/sys/bus/pci/devices/" + device.bus + "/numa_node");
    device.node =
        ParseWhole<int>(Trimmed(std::string_view(node).substr(0, node.find('\n')))).value_or(-1);
    devices.push_back(std::move(device));
  }
  std::ranges::sort(devices, {}, &GpuDevice::bus);
  return devices;
}

}  // namespace hvd
