// Memory of a device that outlives the device object that made it, as a result does that the caller
// owns.
#ifndef HVD_RUNTIME_DEVICE_CUDA_DEVICE_MEMORY_H_
#define HVD_RUNTIME_DEVICE_CUDA_DEVICE_MEMORY_H_

#include "runtime/device/cuda/driver_api.h"
#include "runtime/device/device.h"

namespace hvd {

// Waits until the device is done with all that the process gave it, then frees. Any thread.
void FreeDeviceMemory(const CudaDriver& driver, int ordinal, DeviceAddress address);

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_DEVICE_MEMORY_H_
