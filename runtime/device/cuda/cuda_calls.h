// CudaCalls: calls the CUDA driver and turns the result into a Status whose message names rank,
// device and call. After an error that leaves the context unusable no further call is made: each
// returns the first error, also those of other objects in the same context.
#ifndef HVD_RUNTIME_DEVICE_CUDA_CUDA_CALLS_H_
#define HVD_RUNTIME_DEVICE_CUDA_CUDA_CALLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cuda/driver_api.h"

namespace hvd {

// "cuMemAlloc_v2 answered CUDA_ERROR_OUT_OF_MEMORY (out of memory)", and a remedy if one is known.
std::string CudaFailureText(const CudaDriver& driver, std::string_view call, CuResult result);

Code CodeOfCudaError(CuResult result);
// True if the context can no longer be used in this process.
bool LeavesContextUnusable(CuResult result);

class CudaCalls {
 public:
  // The first error that made a context unusable. Shared by all that make calls in it.
  using Health = std::shared_ptr<Status>;

  // `health`: null if no other object makes calls in this context.
  CudaCalls(const CudaDriver& driver, uint32_t rank, std::string device, Health health = nullptr)
      : driver_(driver),
        rank_(rank),
        device_(std::move(device)),
        health_(health != nullptr ? std::move(health) : std::make_shared<Status>()) {}

  const CudaDriver& driver() const { return driver_; }
  const std::string& device() const { return device_; }
  void set_device(std::string device) { device_ = std::move(device); }
  const Status& broken() const { return *health_; }
  const Health& health() const { return health_; }

  // Calls.Do(driver.event_record, event, stream)
  template <typename... Parameters, typename... Arguments>
  Status Do(const EntryPoint<CuResult(Parameters...)>& entry, Arguments... arguments) {
    if (!broken().ok()) return broken();
    return Checked(entry.symbol, entry(arguments...));
  }
  // The Status for the result of a call made elsewhere.
  Status Checked(std::string_view call, CuResult result);

 private:
  const CudaDriver driver_;
  const uint32_t rank_;
  std::string device_;
  const Health health_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_CUDA_CALLS_H_
