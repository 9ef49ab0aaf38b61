// Frees device memory that outlives the Device that allocated it, such as a result owned by the
// caller.
#ifndef HVD_RUNTIME_DEVICE_CUDA_DEVICE_MEMORY_H_
#define HVD_RUNTIME_DEVICE_CUDA_DEVICE_MEMORY_H_

#include "runtime/device/cuda/driver_api.h"
#include "runtime/device/device.h"

namespace hvd {

// Frees the memory once the device has finished all work of this process (deferred during a graph
// capture, see CaptureGate). Any thread.
void FreeDeviceMemory(const CudaDriver& driver, int ordinal, DeviceAddress address);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_DEVICE_MEMORY_H_
