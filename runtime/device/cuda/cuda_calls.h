// CudaCalls: makes a call of the CUDA driver and turns its answer into a Status, whose sentence
// names rank, device and call. After an error that leaves the context unusable, no further call is
// made: each answers with the first error.
#ifndef HVD_RUNTIME_DEVICE_CUDA_CUDA_CALLS_H_
#define HVD_RUNTIME_DEVICE_CUDA_CUDA_CALLS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cuda/driver_api.h"

namespace hvd {

// "cuMemAlloc_v2 answered CUDA_ERROR_OUT_OF_MEMORY (out of memory)", and a remedy where one is
// known.
std::string CudaFailureText(const CudaDriver& driver, std::string_view call, CuResult result);

Code CodeOfCudaError(CuResult result);
// True if nothing can be done in the context any more, in this process.
bool LeavesContextUnusable(CuResult result);

class CudaCalls {
 public:
  CudaCalls(const CudaDriver& driver, uint32_t rank, std::string device)
      : driver_(driver), rank_(rank), device_(std::move(device)) {}

  const CudaDriver& driver() const { return driver_; }
  const std::string& device() const { return device_; }
  void set_device(std::string device) { device_ = std::move(device); }
  // The first error after which the context is unusable.
  const Status& broken() const { return broken_; }

  // Calls.Do(driver.event_record, event, stream)
  template <typename... Parameters, typename... Arguments>
  Status Do(const EntryPoint<CuResult(Parameters...)>& entry, Arguments... arguments) {
    if (!broken_.ok()) return broken_;
    return Checked(entry.symbol, entry(arguments...));
  }
  // The answer of a call that was made elsewhere.
  Status Checked(std::string_view call, CuResult result);

 private:
  const CudaDriver driver_;
  const uint32_t rank_;
  std::string device_;
  Status broken_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_CUDA_CALLS_H_
