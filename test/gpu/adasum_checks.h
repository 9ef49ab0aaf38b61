// The kernels of Adasum on a GPU, beside the same launches played by the processor: bit for bit,
// the sums of single blocks included.
#ifndef HVD_TEST_GPU_ADASUM_CHECKS_H_
#define HVD_TEST_GPU_ADASUM_CHECKS_H_

#include <vector>

#include "runtime/device/device.h"
#include "test/gpu/gpu_checks.h"

namespace hvd::test {

std::vector<GpuCheck> RunAdasumChecks(Device& device, const GpuCheckOptions& options);
// All steps over four vectors of float32: each is read twice, and the result written.
Result<GpuFigure> MeasureAdasum(Device& device, const GpuCheckOptions& options);

}  // namespace hvd::test

#endif  // HVD_TEST_GPU_ADASUM_CHECKS_H_
