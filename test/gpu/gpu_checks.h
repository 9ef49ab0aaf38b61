// The checks that scripts/test_gpu.sh runs on a GPU: each check moves data by a Device and compares
// them with the processor's results; the figures are bytes per second. Unit tests run the same over
// the fake driver.
#ifndef HVD_TEST_GPU_GPU_CHECKS_H_
#define HVD_TEST_GPU_GPU_CHECKS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/device/device.h"

namespace hvd::test {

struct GpuCheck {
  std::string name;
  std::string failure;  // "" when it passed
};

struct GpuFigure {
  std::string name;
  double gigabytes_per_second = 0;  // read and written, the best of several rounds
};

struct GpuCheckOptions {
  uint32_t seed = 18;
  uint64_t figure_bytes = uint64_t{256} << 20;  // of each of both sides
  int figure_rounds = 10;
  int moves_in_a_round = 8;  // given one after the other, so that the wait is a small part
  // Called again and again while the device works.
  std::function<void()> idle = [] {};
  // In seconds.
  std::function<double()> now;
};

std::vector<GpuCheck> RunGpuChecks(Device& device, const GpuCheckOptions& options);
// Ends with the first failure, which the result then has.
Result<std::vector<GpuFigure>> MeasureGpu(Device& device, const GpuCheckOptions& options);

// One object of JSON. `most`: the bandwidth of the memory as the driver tells it, of which each
// figure is a share; 0: it does not tell.
std::string GpuSummary(const std::string& device, const std::vector<GpuCheck>& checks,
                       const std::vector<GpuFigure>& figures, double most = 0);

}  // namespace hvd::test

#endif  // HVD_TEST_GPU_GPU_CHECKS_H_
