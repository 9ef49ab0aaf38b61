// The functions that horovod/jax/native.py calls, and the handler that it registers with XLA.
#include <cstdint>
#include <cstdio>

#include "runtime/frameworks/jax/program_collective.h"
#include "runtime/frameworks/jax/xla_ffi.h"

namespace {

hvd::jax::RuntimeFunctions runtime;

}  // namespace

extern "C" {

// The addresses of hvd_submit, hvd_last_error and hvd_free; before the first collective.
HVD_EXPORT void hvd_jax_bind(void* submit, void* last_error, void* free) {
  runtime.submit = reinterpret_cast<decltype(runtime.submit)>(submit);
  runtime.last_error = reinterpret_cast<decltype(runtime.last_error)>(last_error);
  runtime.free = reinterpret_cast<decltype(runtime.free)>(free);
}

// Returns the status of the last collective that failed inside a program and clears it; writes its
// message to `sentence`, which has room for `size` bytes.
HVD_EXPORT int32_t hvd_jax_failure(char* sentence, int64_t size) {
  const hvd::jax::Failure failure = hvd::jax::PopFailure();
  std::snprintf(sentence, static_cast<size_t>(size), "%s", failure.sentence.c_str());
  return failure.status;
}

// The handler of all collectives. XLA first queries its version, without an API in the frame.
HVD_EXPORT void* hvd_jax_collective(void* call_frame) {
  auto* const frame = static_cast<hvd::xla::CallFrame*>(call_frame);
  if (frame->extension_start != nullptr &&
      frame->extension_start->type == hvd::xla::kMetadataExtension) {
    auto* const extension = reinterpret_cast<hvd::xla::MetadataExtension*>(frame->extension_start);
    extension->metadata->api_version.major_version = hvd::xla::kMajorVersion;
    extension->metadata->api_version.minor_version = hvd::xla::kMinorVersion;
    extension->metadata->traits = 0;
    return nullptr;
  }
  if (frame->stage != hvd::xla::kExecuteStage) return nullptr;
  return hvd::jax::ProgramCollective::Start(frame, runtime);
}
}
