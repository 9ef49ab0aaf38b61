#include "runtime/backends/cuda/cuda_description.h"

#include <algorithm>
#include <array>

#include "runtime/device/cuda/driver_loader.h"

namespace hvd {
namespace {

// "75 80" -> "sm_75, sm_80"
std::string ArchitectureNames(std::string_view architectures) {
  std::string names;
  for (size_t begin = 0; begin < architectures.size();) {
    const size_t end = std::min(architectures.find(' ', begin), architectures.size());
    names +=
        (names.empty() ? "sm_" : ", sm_") + std::string(architectures.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::string DeviceNames(const CudaDriver& driver) {
  int count = 0;
  if (driver.device_get_count(&count) != kCudaSuccess) count = 0;
  std::string names;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CuDevice device = 0;
    std::array<char, 256> name{};
    const bool known = driver.device_get(&device, ordinal) == kCudaSuccess &&
                       driver.device_get_name(name.data(), static_cast<int>(name.size() - 1),
                                              device) == kCudaSuccess;
    names += (ordinal == 0 ? "" : ", ") + std::string(known ? name.data() : "one that has no name");
  }
  return names;
}

}  // namespace

std::string DescribeCuda(std::string_view architectures, const Result<CudaDriver>& driver,
                         const Result<NcclLibrary>& nccl) {
  std::string text =
      "kernels for " + ArchitectureNames(architectures) + " and, as PTX, newer GPUs\n";
  text += driver.ok()
              ? "driver of " + CudaDriverVersion(*driver) + ", GPUs: " + DeviceNames(*driver)
              : driver.status().message();
  text += "\n";
  text += nccl.ok() ? "NCCL " + NcclVersionText(nccl->version) + ", " + nccl->path
                    : nccl.status().message();
  return text + "\n";
}

}  // namespace hvd
