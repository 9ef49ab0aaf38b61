// The NVIDIA GPUs of this host, from files of the kernel and the driver: loads no library, and
// cannot hang on a device that does not respond.
#ifndef HVD_LAUNCHER_AGENT_GPU_GPU_DEVICES_H_
#define HVD_LAUNCHER_AGENT_GPU_GPU_DEVICES_H_

#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct GpuDevice {
  std::string bus;   // "0000:3b:00.0"
  std::string uuid;  // "GPU-5a1f..."; empty: unknown
  int node = -1;     // NUMA node; -1: unknown
};

// The GPUs that this process may open, in order of PCI addresses, as in nvidia-smi, and in CUDA
// with CUDA_DEVICE_ORDER=PCI_BUS_ID. Tests set HVD_TEST_GPU_HOST to a folder with dev, proc and
// sys.
std::vector<GpuDevice> GpusOfThisHost();
// The same below the folder `root`.
std::vector<GpuDevice> GpusBelow(const std::string& root);

// The value of a line such as "GPU UUID: GPU-5a1f..." in the driver's information file; empty:
// none. Pure.
std::string InformationOf(std::string_view information, std::string_view key);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_GPU_GPU_DEVICES_H_
