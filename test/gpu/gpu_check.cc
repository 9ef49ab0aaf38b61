// hvd_gpu_check FOLDER [ORDINAL]: opens a GPU through the libhvd_cuda.so in FOLDER, checks the
// kernels and measures them. One line of JSON on stdout. Exit code 0: all passed; 1: one failed; 3:
// there is no GPU that could be used, and stderr says why.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "runtime/backends/cuda/cuda_plugin.h"
#include "test/gpu/gpu_checks.h"

namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int Fail(int code, const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return code;
}

int Run(const std::string& folder, int ordinal) {
  const hvd::Result<hvd::CudaPlugin> plugin = hvd::LoadCudaPlugin(folder);
  if (!plugin.ok()) return Fail(3, plugin.status().message());
  hvd::Status status;
  const std::unique_ptr<hvd::Device> device(plugin->open_device(0, ordinal, &status));
  if (device == nullptr) return Fail(3, status.message());
  hvd::test::GpuCheckOptions options;
  options.now = &Now;
  const auto checks = hvd::test::RunGpuChecks(*device, options);
  const auto figures = hvd::test::MeasureGpu(*device, options);
  bool passed = figures.ok();
  if (!figures.ok()) Fail(1, figures.status().message());
  for (const auto& check : checks) {
    passed = passed && check.failure.empty();
    if (!check.failure.empty()) Fail(1, check.name + ": " + check.failure);
  }
  const auto none = std::vector<hvd::test::GpuFigure>{};
  std::printf(
      "%s\n",
      hvd::test::GpuSummary(device->name(), checks, figures.ok() ? *figures : none).c_str());
  return passed ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return Fail(2, "usage: hvd_gpu_check FOLDER [ORDINAL]");
  return Run(argv[1], argc > 2 ? std::atoi(argv[2]) : 0);
}
