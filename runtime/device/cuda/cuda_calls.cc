#include "runtime/device/cuda/cuda_calls.h"

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

std::string_view AdviceFor(CuResult result) {
  switch (result) {
    case kCudaOutOfMemory: return "use less memory of this GPU, or look for other processes on it";
    case kCudaStubLibrary:
      return "a libcuda.so for linking was found instead of the driver's: take it off the "
             "library path";
    case kCudaNoDevice: return "look at nvidia-smi and at CUDA_VISIBLE_DEVICES";
    case kCudaInvalidImage:
    case kCudaInvalidPtx:
    case kCudaNoBinaryForGpu:
    case kCudaUnsupportedPtx: return "the driver is older than these kernels: install a newer one";
    case kCudaNoJitCompiler:
    case kCudaJitDisabled:
      return "the kernels have no code for this GPU, and the driver does not compile them";
    case kCudaEccUncorrectable:
    case kCudaNvlinkUncorrectable:
    case kCudaContained: return "the GPU reports a fault of its hardware: look at nvidia-smi -q";
    case kCudaSystemNotReady:
      return "on machines with NVSwitch, start nvidia-fabricmanager of the driver's version";
    case kCudaSystemDriverMismatch:
      return "the kernel has another driver than libcuda.so.1: reboot, or load the right module";
    default:
      return LeavesContextUnusable(result)
                 ? "an earlier kernel may have caused it; only a new process can use the GPU again"
                 : "";
  }
}

}  // namespace

std::string CudaFailureText(const CudaDriver& driver, std::string_view call, CuResult result) {
  const char* name = nullptr;
  const char* description = nullptr;
  if (driver.get_error_name(result, &name) != kCudaSuccess || name == nullptr) name = "error";
  if (driver.get_error_string(result, &description) != kCudaSuccess || description == nullptr) {
    description = "unknown to the driver";
  }
  std::string text = Format("{} answered {} ({}, {})", call, name, result, description);
  if (std::string_view advice = AdviceFor(result); !advice.empty()) {
    text += "; " + std::string(advice);
  }
  return text;
}

Code CodeOfCudaError(CuResult result) {
  switch (result) {
    case kCudaSuccess: return Code::kOk;
    case kCudaOutOfMemory: return Code::kOutOfMemory;
    case kCudaStubLibrary:
    case kCudaNoDevice:
    case kCudaInvalidImage:
    case kCudaInvalidPtx:
    case kCudaNoBinaryForGpu:
    case kCudaUnsupportedPtx:
    case kCudaNoJitCompiler:
    case kCudaJitDisabled:
    case kCudaSystemNotReady:
    case kCudaSystemDriverMismatch: return Code::kUnsupported;
    default: return LeavesContextUnusable(result) ? Code::kAborted : Code::kInternal;
  }
}

bool LeavesContextUnusable(CuResult result) {
  switch (result) {
    case kCudaEccUncorrectable:
    case kCudaNvlinkUncorrectable:
    case kCudaContained:
    case kCudaIllegalAddress:
    case kCudaLaunchTimeout:
    case kCudaContextIsDestroyed:
    case kCudaAssert: return true;
    default: return result >= kCudaHardwareStackError && result <= kCudaLaunchFailed;
  }
}

Status CudaCalls::Checked(std::string_view call, CuResult result) {
  if (result == kCudaSuccess) return Status::Ok();
  Status status(CodeOfCudaError(result), Format("rank {} on {}: {}", rank_, device_,
                                                CudaFailureText(driver_, call, result)));
  if (LeavesContextUnusable(result)) *health_ = status;
  return status;
}

}  // namespace hvd
