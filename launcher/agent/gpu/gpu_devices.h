// The NVIDIA GPUs of this host by the files of the kernel and its driver: no library is loaded, and
// nothing here can hang on a device that does not answer.
#ifndef HVD_LAUNCHER_AGENT_GPU_GPU_DEVICES_H_
#define HVD_LAUNCHER_AGENT_GPU_GPU_DEVICES_H_

#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct GpuDevice {
  std::string bus;   // "0000:3b:00.0"
  std::string uuid;  // "GPU-5a1f..."; empty: not known
  int node = -1;     // NUMA; -1: not known
};

// Those that this process may open, in the order of their PCI addresses: that of nvidia-smi, and of
// CUDA where CUDA_DEVICE_ORDER is PCI_BUS_ID. Tests bring a host of their own (HVD_TEST_GPU_HOST, a
// folder with dev, proc and sys).
std::vector<GpuDevice> GpusOfThisHost();
// The same below the folder `root`.
std::vector<GpuDevice> GpusBelow(const std::string& root);

// The value of "GPU UUID:  GPU-5a1f..." and other lines of the driver's information file; empty:
// there is none. Pure.
std::string InformationOf(std::string_view information, std::string_view key);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_GPU_GPU_DEVICES_H_
