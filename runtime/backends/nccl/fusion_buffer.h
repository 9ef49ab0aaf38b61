// NcclFusionBuffer: device memory in which small tensors are packed for one NCCL call. If supported
// and requested, it is NCCL's own memory, registered with the communicator, so that NCCL moves it
// without a copy. One thread, as for NcclComm and CudaDevice.
#ifndef HVD_RUNTIME_BACKENDS_NCCL_FUSION_BUFFER_H_
#define HVD_RUNTIME_BACKENDS_NCCL_FUSION_BUFFER_H_

#include <cstddef>

#include "runtime/backends/nccl/nccl_comm.h"
#include "runtime/backends/nccl/nccl_plan.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_device.h"

namespace hvd {

class NcclFusionBuffer {
 public:
  // `device` and the library outlive it; the communicator does not, since NCCL must have ended. All
  // members pass the same size and request.
  NcclFusionBuffer(NcclComm& comm, CudaDevice& device, size_t bytes, bool wants_registered)
      : comm_(comm),
        library_(comm.library()),
        member_(comm.member()),
        device_(device),
        bytes_(bytes),
        wants_registered_(wants_registered) {}
  ~NcclFusionBuffer();
  NcclFusionBuffer(const NcclFusionBuffer&) = delete;
  NcclFusionBuffer& operator=(const NcclFusionBuffer&) = delete;

  // Requires a ready communicator. The first call allocates it and has the device clear it: bytes
  // between packed tensors are reduced, too.
  Result<NcclBuffer> Get();
  bool BeginsAt(DeviceAddress address) const { return address != 0 && address == address_; }

 private:
  Status Make();
  Status MakeRegistered();
  Status Clear();

  NcclComm& comm_;
  const NcclLibrary& library_;
  const NcclMember member_;
  CudaDevice& device_;
  const size_t bytes_;
  const bool wants_registered_;
  DeviceAddress address_ = 0;
  bool of_nccl_ = false;  // NCCL's own memory
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_NCCL_FUSION_BUFFER_H_
