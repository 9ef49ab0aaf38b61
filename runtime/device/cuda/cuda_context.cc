#include "runtime/device/cuda/cuda_context.h"

#include <array>
#include <string>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// "CUDA device 1 (NVIDIA H200, sm_90)"
Result<std::string> FullName(CudaCalls& calls, int ordinal, CuDevice device) {
  const CudaDriver& driver = calls.driver();
  std::array<char, 256> name{};
  int major = 0, minor = 0;
  Status status =
      calls.Do(driver.device_get_name, name.data(), static_cast<int>(name.size() - 1), device);
  if (status.ok()) {
    status = calls.Do(driver.device_get_attribute, &major, kCudaComputeCapabilityMajor, device);
  }
  if (status.ok()) {
    status = calls.Do(driver.device_get_attribute, &minor, kCudaComputeCapabilityMinor, device);
  }
  if (!status.ok()) return status;
  return Format("CUDA device {} ({}, sm_{}{})", ordinal, name.data(), major, minor);
}

}  // namespace

Result<std::unique_ptr<CudaContext>> CudaContext::Retain(CudaCalls& calls, int ordinal) {
  CuDevice device = 0;
  HVD_RETURN_IF_ERROR(calls.Do(calls.driver().device_get, &device, ordinal));
  Result<std::string> name = FullName(calls, ordinal, device);
  if (!name.ok()) return name.status();
  calls.set_device(*name);
  CuContext handle = nullptr;
  HVD_RETURN_IF_ERROR(calls.Do(calls.driver().primary_ctx_retain, &handle, device));
  return std::unique_ptr<CudaContext>(new CudaContext(calls, device, handle));
}

// Also of a broken context: it counts who retained it.
CudaContext::~CudaContext() { calls_.driver().primary_ctx_release(device_); }

ContextScope::~ContextScope() {
  if (!status_.ok()) return;
  CuContext before = nullptr;
  calls_.driver().ctx_pop_current(&before);
}

}  // namespace hvd
