#include "runtime/device/cuda/device_memory.h"

#include "runtime/device/cuda/cuda_graph.h"

namespace hvd {
namespace {

// If a call fails here, the memory stays allocated until the process exits.
void FreeOnIdleDevice(const CudaDriver& driver, int ordinal, DeviceAddress address) {
  CuDevice device = 0;
  CuContext context = nullptr;
  if (driver.device_get(&device, ordinal) != kCudaSuccess) return;
  if (driver.primary_ctx_retain(&context, device) != kCudaSuccess) return;
  if (driver.ctx_push_current(context) == kCudaSuccess) {
    int capture_mode = kCudaCaptureRelaxed;
    driver.exchange_capture_mode(&capture_mode);
    driver.ctx_synchronize();
    driver.mem_free(address);
    driver.exchange_capture_mode(&capture_mode);
    driver.ctx_pop_current(&context);
  }
  driver.primary_ctx_release(device);
}

}  // namespace

void FreeDeviceMemory(const CudaDriver& driver, int ordinal, DeviceAddress address) {
  CaptureGate::OfProcess().Run(
      [driver, ordinal, address] { FreeOnIdleDevice(driver, ordinal, address); });
}

}  // namespace hvd
