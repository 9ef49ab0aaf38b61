#include "runtime/backends/nccl/fusion_buffer.h"

#include <cstdint>
#include <cstring>

#include "runtime/backends/nccl/nccl_calls.h"
#include "runtime/backends/nccl/nccl_features.h"

namespace hvd {

NcclFusionBuffer::~NcclFusionBuffer() {
  if (address_ == 0) return;
  if (!of_nccl_) {
    (void)device_.Free(address_);
    return;
  }
  (void)device_.Drain();  // NCCL frees it at once, whatever is still enqueued
  (void)device_.With([&](CuStream) {
    library_.api.mem_free(reinterpret_cast<void*>(static_cast<uintptr_t>(address_)));
    return Status::Ok();
  });
}

Result<NcclBuffer> NcclFusionBuffer::Get() {
  if (address_ == 0) {
    HVD_RETURN_IF_ERROR(Make());
    HVD_RETURN_IF_ERROR(Clear());
  }
  return NcclBuffer{address_, bytes_};
}

Status NcclFusionBuffer::Make() {
  const bool can = CheckNcclFeature(library_, NcclFeature::kAllocate).ok() &&
                   CheckNcclFeature(library_, NcclFeature::kRegister).ok();
  if (wants_registered_ && can) return MakeRegistered();
  const Result<DeviceAddress> made = device_.Allocate(bytes_);
  if (!made.ok()) return made.status();
  address_ = *made;
  return Status::Ok();
}

Status NcclFusionBuffer::MakeRegistered() {
  return device_.With([&](CuStream) {
    void* memory = nullptr;
    const auto& allocate = library_.api.mem_alloc;
    const NcclAnswer answer{allocate.symbol, allocate(&memory, bytes_)};
    if (answer.failed()) return NcclFailure(library_.api, member_, answer, nullptr);
    of_nccl_ = true;
    address_ = static_cast<DeviceAddress>(reinterpret_cast<uintptr_t>(memory));
    return comm_.Register(memory, bytes_);
  });
}

Status NcclFusionBuffer::Clear() {
  const Result<std::byte*> zeros = device_.BorrowStaging(bytes_);
  if (!zeros.ok()) return zeros.status();
  std::memset(*zeros, 0, bytes_);
  Status cleared = device_.CopyIn(address_, *zeros, bytes_);
  HVD_RETURN_IF_ERROR(device_.ReturnStaging(*zeros));
  return cleared;
}

}  // namespace hvd
