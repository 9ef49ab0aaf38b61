// The part of the CUDA driver API used here, as a table of entry points. The declarations are our
// own, so that everything but the kernels is compiled and tested without CUDA; a test compares them
// with cuda.h if it is installed.
#ifndef HVD_RUNTIME_DEVICE_CUDA_DRIVER_API_H_
#define HVD_RUNTIME_DEVICE_CUDA_DRIVER_API_H_

#include <cstddef>

#include "runtime/base/loading/entry_point.h"

namespace hvd {

using CuResult = int;
using CuDevice = int;
using CuAddress = unsigned long long;  // NOLINT(google-runtime-int): as in cuda.h
using CuContext = struct CuContextObject*;
using CuStream = struct CuStreamObject*;
using CuEvent = struct CuEventObject*;
using CuModule = struct CuModuleObject*;
using CuFunction = struct CuFunctionObject*;
using CuGraph = struct CuGraphObject*;
using CuGraphExec = struct CuGraphExecObject*;

inline constexpr CuResult kCudaSuccess = 0;
inline constexpr CuResult kCudaOutOfMemory = 2;
inline constexpr CuResult kCudaStubLibrary = 34;
inline constexpr CuResult kCudaNoDevice = 100;
inline constexpr CuResult kCudaInvalidImage = 200;
inline constexpr CuResult kCudaNoBinaryForGpu = 209;
inline constexpr CuResult kCudaEccUncorrectable = 214;
inline constexpr CuResult kCudaNvlinkUncorrectable = 220;
inline constexpr CuResult kCudaInvalidPtx = 218;
inline constexpr CuResult kCudaNoJitCompiler = 221;
inline constexpr CuResult kCudaUnsupportedPtx = 222;
inline constexpr CuResult kCudaJitDisabled = 223;
inline constexpr CuResult kCudaContained = 226;
inline constexpr CuResult kCudaNotReady = 600;
inline constexpr CuResult kCudaIllegalAddress = 700;
inline constexpr CuResult kCudaLaunchTimeout = 702;
inline constexpr CuResult kCudaContextIsDestroyed = 709;
inline constexpr CuResult kCudaAssert = 710;
inline constexpr CuResult kCudaHardwareStackError = 714;
inline constexpr CuResult kCudaLaunchFailed = 719;
inline constexpr CuResult kCudaSystemNotReady = 802;
inline constexpr CuResult kCudaSystemDriverMismatch = 803;
inline constexpr CuResult kCudaCaptureImplicit = 906;
inline constexpr CuResult kCudaUnknown = 999;

inline constexpr int kCudaComputeCapabilityMajor = 75;  // device attributes
inline constexpr int kCudaComputeCapabilityMinor = 76;
inline constexpr int kCudaPciBus = 33;
inline constexpr int kCudaPciSlot = 34;
inline constexpr int kCudaPciDomain = 50;
inline constexpr unsigned kCudaStreamNonBlocking = 1;  // does not wait for the default stream
inline constexpr int kCudaCaptureNone = 0;             // status of a stream
inline constexpr int kCudaCaptureRelaxed = 2;          // mode of a thread
inline constexpr unsigned kCudaEventDisableTiming = 2;
inline constexpr unsigned kCudaHostPortable = 1;  // pinned for all contexts

// CALL(field, symbol, arguments). If the driver has revised a call, the symbol includes the
// revision: the plain name is the old version.
#define HVD_CUDA_DRIVER_CALLS(CALL)                                                                \
  CALL(init, "cuInit", (unsigned flags))                                                           \
  CALL(driver_get_version, "cuDriverGetVersion", (int* version))                                   \
  CALL(get_error_name, "cuGetErrorName", (CuResult error, const char** name))                      \
  CALL(get_error_string, "cuGetErrorString", (CuResult error, const char** description))           \
  CALL(device_get_count, "cuDeviceGetCount", (int* count))                                         \
  CALL(device_get, "cuDeviceGet", (CuDevice * device, int ordinal))                                \
  CALL(device_get_name, "cuDeviceGetName", (char* name, int bytes, CuDevice device))               \
  CALL(device_get_attribute, "cuDeviceGetAttribute", (int* value, int attribute, CuDevice device)) \
  CALL(primary_ctx_retain, "cuDevicePrimaryCtxRetain", (CuContext * context, CuDevice device))     \
  CALL(primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", (CuDevice device))                     \
  CALL(ctx_push_current, "cuCtxPushCurrent_v2", (CuContext context))                               \
  CALL(ctx_pop_current, "cuCtxPopCurrent_v2", (CuContext * context))                               \
  CALL(ctx_synchronize, "cuCtxSynchronize", ())                                                    \
  CALL(ctx_get_stream_priority_range, "cuCtxGetStreamPriorityRange", (int* least, int* greatest))  \
  CALL(stream_create, "cuStreamCreateWithPriority",                                                \
       (CuStream * stream, unsigned flags, int priority))                                          \
  CALL(stream_destroy, "cuStreamDestroy_v2", (CuStream stream))                                    \
  CALL(stream_wait_event, "cuStreamWaitEvent", (CuStream stream, CuEvent event, unsigned flags))   \
  CALL(stream_synchronize, "cuStreamSynchronize", (CuStream stream))                               \
  CALL(stream_is_capturing, "cuStreamIsCapturing", (CuStream stream, int* status))                 \
  CALL(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int* mode))                    \
  CALL(event_create, "cuEventCreate", (CuEvent * event, unsigned flags))                           \
  CALL(event_destroy, "cuEventDestroy_v2", (CuEvent event))                                        \
  CALL(event_record, "cuEventRecord", (CuEvent event, CuStream stream))                            \
  CALL(event_query, "cuEventQuery", (CuEvent event))                                               \
  CALL(mem_alloc, "cuMemAlloc_v2", (CuAddress * address, size_t bytes))                            \
  CALL(mem_free, "cuMemFree_v2", (CuAddress address))                                              \
  CALL(mem_host_alloc, "cuMemHostAlloc", (void** memory, size_t bytes, unsigned flags))            \
  CALL(mem_free_host, "cuMemFreeHost", (void* memory))                                             \
  CALL(memcpy_to_device, "cuMemcpyHtoDAsync_v2",                                                   \
       (CuAddress to, const void* from, size_t bytes, CuStream stream))                            \
  CALL(memcpy_to_host, "cuMemcpyDtoHAsync_v2",                                                     \
       (void* to, CuAddress from, size_t bytes, CuStream stream))                                  \
  CALL(module_load_data, "cuModuleLoadData", (CuModule * module, const void* image))               \
  CALL(module_unload, "cuModuleUnload", (CuModule module))                                         \
  CALL(module_get_function, "cuModuleGetFunction",                                                 \
       (CuFunction * function, CuModule module, const char* name))                                 \
  CALL(launch_kernel, "cuLaunchKernel",                                                            \
       (CuFunction function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,              \
        unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,         \
        CuStream stream, void** parameters, void** extra))

// The same for CUDA graphs, which are optional: null if the driver lacks the call.
#define HVD_CUDA_GRAPH_CALLS(CALL)                                                               \
  CALL(stream_begin_capture, "cuStreamBeginCapture_v2", (CuStream stream, int mode))             \
  CALL(stream_end_capture, "cuStreamEndCapture", (CuStream stream, CuGraph * graph))             \
  CALL(graph_instantiate, "cuGraphInstantiateWithFlags",                                         \
       (CuGraphExec * made, CuGraph graph, unsigned long long flags)) /* NOLINT: as in cuda.h */ \
  CALL(graph_destroy, "cuGraphDestroy", (CuGraph graph))                                         \
  CALL(graph_launch, "cuGraphLaunch", (CuGraphExec graph, CuStream stream))                      \
  CALL(graph_exec_destroy, "cuGraphExecDestroy", (CuGraphExec graph))

struct CudaDriver {
#define HVD_ENTRY(field, symbol, arguments) EntryPoint<CuResult arguments> field{symbol};
  HVD_CUDA_DRIVER_CALLS(HVD_ENTRY)
  HVD_CUDA_GRAPH_CALLS(HVD_ENTRY)
#undef HVD_ENTRY
};

template <typename Visitor>
void ForEachEntry(CudaDriver& driver, Visitor&& visit) {
#define HVD_VISIT(field, symbol, arguments) visit(driver.field);
  HVD_CUDA_DRIVER_CALLS(HVD_VISIT)
#undef HVD_VISIT
}

template <typename Visitor>
void ForEachGraphEntry(CudaDriver& driver, Visitor&& visit) {
#define HVD_VISIT(field, symbol, arguments) visit(driver.field);
  HVD_CUDA_GRAPH_CALLS(HVD_VISIT)
#undef HVD_VISIT
}

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_DRIVER_API_H_
