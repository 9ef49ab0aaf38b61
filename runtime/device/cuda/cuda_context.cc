#include "runtime/device/cuda/cuda_context.h"

#include <array>
#include <string>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

Result<CudaContext::Facts> FactsOf(CudaCalls& calls, int ordinal, CuDevice device) {
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
  std::array<int, 3> place{};  // domain, bus, slot
  constexpr std::array<int, 3> kPlace = {kCudaPciDomain, kCudaPciBus, kCudaPciSlot};
  for (size_t i = 0; i < place.size() && status.ok(); ++i)
    status = calls.Do(driver.device_get_attribute, &place[i], kPlace[i], device);
  if (!status.ok()) return status;
  const auto number = [&](size_t i) { return static_cast<uint64_t>(place[i]); };
  CudaContext::Facts facts{.compute_capability = major * 10 + minor,
                           .place = number(0) << 32 | number(1) << 16 | number(2)};
  facts.name = Format("CUDA device {} ({}, sm_{}{})", ordinal, name.data(), major, minor);
  return facts;
}

}  // namespace

Result<std::unique_ptr<CudaContext>> CudaContext::Retain(CudaCalls& calls, int ordinal) {
  CuDevice device = 0;
  HVD_RETURN_IF_ERROR(calls.Do(calls.driver().device_get, &device, ordinal));
  Result<Facts> facts = FactsOf(calls, ordinal, device);
  if (!facts.ok()) return facts.status();
  calls.set_device(facts->name);
  CuContext handle = nullptr;
  HVD_RETURN_IF_ERROR(calls.Do(calls.driver().primary_ctx_retain, &handle, device));
  return std::unique_ptr<CudaContext>(new CudaContext(calls, device, handle, *facts));
}

// Also for a broken context: the driver counts its users.
CudaContext::~CudaContext() { calls_.driver().primary_ctx_release(device_); }

Status ContextScope::Enter(const CudaContext& context) {
  const CudaDriver& driver = calls_.driver();
  HVD_RETURN_IF_ERROR(calls_.Do(driver.ctx_push_current, context.handle()));
  Status relaxed = calls_.Do(driver.exchange_capture_mode, &capture_mode_);
  CuContext before = nullptr;
  if (!relaxed.ok()) driver.ctx_pop_current(&before);
  return relaxed;
}

ContextScope::~ContextScope() {
  if (!status_.ok()) return;
  CuContext before = nullptr;
  calls_.driver().exchange_capture_mode(&capture_mode_);
  calls_.driver().ctx_pop_current(&before);
}

}  // namespace hvd
