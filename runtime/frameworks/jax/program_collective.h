// One collective of a compiled program, from the FFI handler's call to the runtime's callback.
#ifndef HVD_RUNTIME_FRAMEWORKS_JAX_PROGRAM_COLLECTIVE_H_
#define HVD_RUNTIME_FRAMEWORKS_JAX_PROGRAM_COLLECTIVE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/frameworks/jax/xla_ffi.h"

namespace hvd::jax {

// Functions of the libhvd.so that Python has loaded.
struct RuntimeFunctions {
  int32_t (*submit)(const hvd_request*, hvd_handle*) = nullptr;
  const char* (*last_error)() = nullptr;
  int32_t (*free)(void*) = nullptr;
};

struct Failure {
  int32_t status = HVD_OK;
  std::string sentence;
};

// XLA keeps the buffers alive until the call completes. If XLA has futures the call completes
// asynchronously; otherwise the handler waits for it.
class ProgramCollective {
 public:
  // `frame` must be of the execute stage. The object deletes itself.
  static xla::Error* Start(xla::CallFrame* frame, const RuntimeFunctions& runtime);

 private:
  ProgramCollective(xla::CallFrame* frame, const RuntimeFunctions& runtime);

  std::string Describe(const xla::CallFrame& frame);
  std::string AddTensors(const xla::CallFrame& frame);
  void ReadAttributes(const xla::Attributes& attributes);
  static void OnDone(void* arg, int32_t status, const char* sentence, hvd_result* result);
  void CopyOutputs(const hvd_result& result);
  void Complete();
  xla::Error* MakeError() const;
  bool MakesOutputs() const;

  const RuntimeFunctions runtime_;
  const xla::FfiApi* const api_;
  xla::Future* future_ = nullptr;
  std::string name_;
  std::vector<hvd_tensor> tensors_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<void*> outputs_;
  std::vector<int64_t> output_bytes_;
  std::vector<int64_t> element_bytes_;
  hvd_request request_ = HVD_REQUEST_INIT;
  Failure failure_;
  std::atomic<int> ended_{0};
};

// The last failure of a collective in a program since the previous call; HVD_OK if none.
Failure PopFailure();

}  // namespace hvd::jax

#endif  // HVD_RUNTIME_FRAMEWORKS_JAX_PROGRAM_COLLECTIVE_H_
