// hvd_gpu_check FOLDER [--only-checks]: opens the first GPU through the libhvd_cuda.so in FOLDER,
// checks the kernels and measures them. One line of JSON on stdout. Exit code 0: all passed; 1: one
// failed; 3: there is no GPU that could be used, and stderr says why.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/cuda/cuda_plugin.h"
#include "runtime/device/cuda/driver_loader.h"
#include "test/gpu/gpu_checks.h"

namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int Fail(int code, const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return code;
}

// Of the first GPU, as the driver tells it: clock times width, twice a cycle. 0: it does not tell.
double GigabytesPerSecondOfMemory() {
  constexpr int kClockInKilohertz = 36, kWidthInBits = 37;  // CU_DEVICE_ATTRIBUTE_...
  const hvd::Result<hvd::CudaDriver> driver = hvd::LoadCudaDriver();
  hvd::CuDevice device = 0;
  int clock = 0, width = 0;
  const bool told = driver.ok() && driver->device_get(&device, 0) == hvd::kCudaSuccess &&
                    driver->device_get_attribute(&clock, kClockInKilohertz, device) == 0 &&
                    driver->device_get_attribute(&width, kWidthInBits, device) == 0;
  return told ? 2.0 * clock * 1e3 * width / 8 / 1e9 : 0;
}

int Run(const std::string& folder, bool measures) {
  const hvd::Result<hvd::CudaPlugin> plugin = hvd::LoadCudaPlugin(folder);
  if (!plugin.ok()) return Fail(3, plugin.status().message());
  hvd::Status status;
  const std::unique_ptr<hvd::Device> device(plugin->open_device(0, 0, &status));
  if (device == nullptr) return Fail(3, status.message());
  hvd::test::GpuCheckOptions options;
  options.now = &Now;
  const auto checks = hvd::test::RunGpuChecks(*device, options);
  const auto none = std::vector<hvd::test::GpuFigure>{};
  const auto figures = measures ? hvd::test::MeasureGpu(*device, options)
                                : hvd::Result<std::vector<hvd::test::GpuFigure>>(none);
  bool passed = figures.ok();
  if (!figures.ok()) Fail(1, figures.status().message());
  for (const auto& check : checks) {
    passed = passed && check.failure.empty();
    if (!check.failure.empty()) Fail(1, check.name + ": " + check.failure);
  }
  std::printf("%s\n", hvd::test::GpuSummary(device->name(), checks, figures.ok() ? *figures : none,
                                            measures ? GigabytesPerSecondOfMemory() : 0)
                          .c_str());
  return passed ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool only_checks = argc == 3 && std::string_view(argv[2]) == "--only-checks";
  if (argc < 2 || argc > 3 || (argc == 3 && !only_checks))
    return Fail(2, "usage: hvd_gpu_check FOLDER [--only-checks]");
  return Run(argv[1], !only_checks);
}
