// The declarations of our own beside those of NVIDIA: one that differs does not compile.
#include <gtest/gtest.h>

#include <type_traits>

#include "runtime/backends/nccl/nccl_api.h"
#include "runtime/device/cuda/driver_api.h"
#include "runtime/device/cuda/nvrtc/nvrtc_api.h"

#ifdef HVD_CUDA_HEADER
#include <cuda.h>
#include <nvrtc.h>
#endif
#ifdef HVD_NCCL_HEADER
#include <nccl.h>
#endif

namespace hvd {
namespace {

// Values that a function takes in the same way: pointers for pointers, numbers for numbers of their
// size, structs for structs of theirs.
template <typename A, typename B>
constexpr bool kSameValue =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>&& std::is_class_v<A> ==
                                  std::is_class_v<B>&& std::is_floating_point_v<A> ==
                                  std::is_floating_point_v<B>;

template <typename A, typename B>
struct SameCall : std::false_type {};
template <typename R1, typename... A1, typename R2, typename... A2>
requires(sizeof...(A1) == sizeof...(A2)) struct SameCall<R1(A1...), R2(A2...)>
    : std::bool_constant<kSameValue<R1, R2> && (kSameValue<A1, A2> && ...)> {
};

static_assert(SameCall<int(char*, unsigned), int(void*, int)>::value);
static_assert(!SameCall<int(char*), int(long)>::value);
static_assert(!SameCall<int(int), int(long)>::value);
static_assert(!SameCall<int(int), int(int, int)>::value);

template <typename Function>
Function* TypeOf(const EntryPoint<Function>&);
template <typename Entry>
using TypeOfEntry = std::remove_pointer_t<decltype(TypeOf(std::declval<Entry>()))>;

#ifdef HVD_CUDA_HEADER
// cuda.h gives a call its symbol with the revision by a macro of the plain name.
#define HVD_SAME(field, name) \
  static_assert(SameCall<TypeOfEntry<decltype(CudaDriver::field)>, decltype(name)>::value, #name);
#define HVD_SAME_NVRTC(field, name) \
  static_assert(SameCall<TypeOfEntry<decltype(NvrtcApi::field)>, decltype(name)>::value, #name);
HVD_SAME(init, cuInit)
HVD_SAME(driver_get_version, cuDriverGetVersion)
HVD_SAME(get_error_name, cuGetErrorName)
HVD_SAME(get_error_string, cuGetErrorString)
HVD_SAME(device_get_count, cuDeviceGetCount)
HVD_SAME(device_get, cuDeviceGet)
HVD_SAME(device_get_name, cuDeviceGetName)
HVD_SAME(device_get_attribute, cuDeviceGetAttribute)
HVD_SAME(primary_ctx_retain, cuDevicePrimaryCtxRetain)
HVD_SAME(primary_ctx_release, cuDevicePrimaryCtxRelease)
HVD_SAME(ctx_push_current, cuCtxPushCurrent)
HVD_SAME(ctx_pop_current, cuCtxPopCurrent)
HVD_SAME(ctx_synchronize, cuCtxSynchronize)
HVD_SAME(ctx_get_stream_priority_range, cuCtxGetStreamPriorityRange)
HVD_SAME(stream_create, cuStreamCreateWithPriority)
HVD_SAME(stream_destroy, cuStreamDestroy)
HVD_SAME(stream_wait_event, cuStreamWaitEvent)
HVD_SAME(stream_synchronize, cuStreamSynchronize)
HVD_SAME(stream_is_capturing, cuStreamIsCapturing)
HVD_SAME(exchange_capture_mode, cuThreadExchangeStreamCaptureMode)
HVD_SAME(event_create, cuEventCreate)
HVD_SAME(event_destroy, cuEventDestroy)
HVD_SAME(event_record, cuEventRecord)
HVD_SAME(event_query, cuEventQuery)
HVD_SAME(mem_alloc, cuMemAlloc)
HVD_SAME(mem_free, cuMemFree)
HVD_SAME(mem_host_alloc, cuMemHostAlloc)
HVD_SAME(mem_free_host, cuMemFreeHost)
HVD_SAME(memcpy_to_device, cuMemcpyHtoDAsync)
HVD_SAME(memcpy_to_host, cuMemcpyDtoHAsync)
HVD_SAME(module_load_data, cuModuleLoadData)
HVD_SAME(module_unload, cuModuleUnload)
HVD_SAME(module_get_function, cuModuleGetFunction)
HVD_SAME(launch_kernel, cuLaunchKernel)
HVD_SAME(stream_begin_capture, cuStreamBeginCapture)
HVD_SAME(stream_end_capture, cuStreamEndCapture)
HVD_SAME(graph_instantiate, cuGraphInstantiateWithFlags)
HVD_SAME(graph_destroy, cuGraphDestroy)
HVD_SAME(graph_launch, cuGraphLaunch)
HVD_SAME(graph_exec_destroy, cuGraphExecDestroy)
HVD_SAME_NVRTC(version, nvrtcVersion)
HVD_SAME_NVRTC(create_program, nvrtcCreateProgram)
HVD_SAME_NVRTC(destroy_program, nvrtcDestroyProgram)
HVD_SAME_NVRTC(compile_program, nvrtcCompileProgram)
HVD_SAME_NVRTC(get_program_log_size, nvrtcGetProgramLogSize)
HVD_SAME_NVRTC(get_program_log, nvrtcGetProgramLog)
HVD_SAME_NVRTC(get_cubin_size, nvrtcGetCUBINSize)
HVD_SAME_NVRTC(get_cubin, nvrtcGetCUBIN)
HVD_SAME_NVRTC(get_error_string, nvrtcGetErrorString)
static_assert(kNvrtcSuccess == NVRTC_SUCCESS && kNvrtcCompilation == NVRTC_ERROR_COMPILATION);
static_assert(kNvrtcInvalidOption == NVRTC_ERROR_INVALID_OPTION);
#undef HVD_SAME
#undef HVD_SAME_NVRTC

// The symbol of each entry is the one that cuda.h makes of the plain name.
TEST(CudaAbi, EachSymbolIsOfTheRevisionInTheHeader) {
  const CudaDriver driver;
#define HVD_TEXT(name) #name
#define HVD_SYMBOL(entry, name) EXPECT_STREQ(entry.symbol, HVD_TEXT(name))
  HVD_SYMBOL(driver.primary_ctx_release, cuDevicePrimaryCtxRelease);
  HVD_SYMBOL(driver.ctx_push_current, cuCtxPushCurrent);
  HVD_SYMBOL(driver.ctx_pop_current, cuCtxPopCurrent);
  HVD_SYMBOL(driver.stream_create, cuStreamCreateWithPriority);
  HVD_SYMBOL(driver.stream_destroy, cuStreamDestroy);
  HVD_SYMBOL(driver.stream_wait_event, cuStreamWaitEvent);
  HVD_SYMBOL(driver.stream_synchronize, cuStreamSynchronize);
  HVD_SYMBOL(driver.stream_is_capturing, cuStreamIsCapturing);
  HVD_SYMBOL(driver.exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
  HVD_SYMBOL(driver.event_create, cuEventCreate);
  HVD_SYMBOL(driver.event_destroy, cuEventDestroy);
  HVD_SYMBOL(driver.event_record, cuEventRecord);
  HVD_SYMBOL(driver.event_query, cuEventQuery);
  HVD_SYMBOL(driver.mem_alloc, cuMemAlloc);
  HVD_SYMBOL(driver.mem_free, cuMemFree);
  HVD_SYMBOL(driver.mem_host_alloc, cuMemHostAlloc);
  HVD_SYMBOL(driver.memcpy_to_device, cuMemcpyHtoDAsync);
  HVD_SYMBOL(driver.memcpy_to_host, cuMemcpyDtoHAsync);
  HVD_SYMBOL(driver.launch_kernel, cuLaunchKernel);
  HVD_SYMBOL(driver.stream_begin_capture, cuStreamBeginCapture);
  HVD_SYMBOL(driver.stream_end_capture, cuStreamEndCapture);
  HVD_SYMBOL(driver.graph_instantiate, cuGraphInstantiateWithFlags);
  HVD_SYMBOL(driver.graph_launch, cuGraphLaunch);
#undef HVD_SYMBOL
#undef HVD_TEXT
}

static_assert(kCudaOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kCudaStubLibrary == CUDA_ERROR_STUB_LIBRARY);
static_assert(kCudaNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kCudaInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(kCudaInvalidPtx == CUDA_ERROR_INVALID_PTX);
static_assert(kCudaNoJitCompiler == CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
static_assert(kCudaJitDisabled == CUDA_ERROR_JIT_COMPILATION_DISABLED);
static_assert(kCudaNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(kCudaEccUncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE);
static_assert(kCudaNvlinkUncorrectable == CUDA_ERROR_NVLINK_UNCORRECTABLE);
static_assert(kCudaUnsupportedPtx == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(kCudaNotReady == CUDA_ERROR_NOT_READY);
static_assert(kCudaIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(kCudaLaunchTimeout == CUDA_ERROR_LAUNCH_TIMEOUT);
static_assert(kCudaContextIsDestroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED);
static_assert(kCudaAssert == CUDA_ERROR_ASSERT);
static_assert(kCudaHardwareStackError == CUDA_ERROR_HARDWARE_STACK_ERROR);
static_assert(kCudaLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(kCudaSystemNotReady == CUDA_ERROR_SYSTEM_NOT_READY);
static_assert(kCudaSystemDriverMismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
static_assert(kCudaUnknown == CUDA_ERROR_UNKNOWN);
static_assert(kCudaCaptureImplicit == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
static_assert(kCudaCaptureNone == CU_STREAM_CAPTURE_STATUS_NONE);
static_assert(kCudaCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(kCudaComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kCudaComputeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kCudaStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kCudaEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kCudaHostPortable == CU_MEMHOSTALLOC_PORTABLE);
#if CUDA_VERSION >= 12090
static_assert(kCudaContained == CUDA_ERROR_CONTAINED);
#endif
#endif  // HVD_CUDA_HEADER

#ifdef HVD_NCCL_HEADER
#define HVD_SAME(field, name) \
  static_assert(SameCall<TypeOfEntry<decltype(NcclApi::field)>, decltype(name)>::value, #name);
HVD_SAME(get_version, ncclGetVersion)
HVD_SAME(get_unique_id, ncclGetUniqueId)
HVD_SAME(comm_init_rank_config, ncclCommInitRankConfig)
HVD_SAME(comm_get_async_error, ncclCommGetAsyncError)
HVD_SAME(comm_finalize, ncclCommFinalize)
HVD_SAME(comm_destroy, ncclCommDestroy)
HVD_SAME(comm_abort, ncclCommAbort)
HVD_SAME(group_start, ncclGroupStart)
HVD_SAME(group_end, ncclGroupEnd)
HVD_SAME(all_reduce, ncclAllReduce)
HVD_SAME(reduce, ncclReduce)
HVD_SAME(broadcast, ncclBroadcast)
HVD_SAME(all_gather, ncclAllGather)
HVD_SAME(reduce_scatter, ncclReduceScatter)
HVD_SAME(send, ncclSend)
HVD_SAME(recv, ncclRecv)
HVD_SAME(red_op_create_pre_mul_sum, ncclRedOpCreatePreMulSum)
HVD_SAME(red_op_destroy, ncclRedOpDestroy)
HVD_SAME(get_error_string, ncclGetErrorString)
HVD_SAME(get_last_error, ncclGetLastError)
#if NCCL_VERSION_CODE >= 21901
HVD_SAME(mem_alloc, ncclMemAlloc)
HVD_SAME(mem_free, ncclMemFree)
HVD_SAME(comm_register, ncclCommRegister)
HVD_SAME(comm_deregister, ncclCommDeregister)
#endif
#if NCCL_VERSION_CODE >= 22403
static_assert(kNcclFloat8E4m3 == ncclFloat8e4m3);
static_assert(kNcclFloat8E5m2 == ncclFloat8e5m2);
#endif
#undef HVD_SAME
static_assert(kNcclCudaError == ncclUnhandledCudaError);
static_assert(kNcclSystemError == ncclSystemError);
static_assert(kNcclInternalError == ncclInternalError);
static_assert(kNcclInvalidArgument == ncclInvalidArgument);
static_assert(kNcclInvalidUsage == ncclInvalidUsage);
static_assert(kNcclRemoteError == ncclRemoteError);
static_assert(kNcclInt8 == ncclInt8 && kNcclUint8 == ncclUint8);
static_assert(kNcclInt32 == ncclInt32 && kNcclInt64 == ncclInt64);
static_assert(kNcclFloat16 == ncclFloat16 && kNcclFloat32 == ncclFloat32);
static_assert(kNcclFloat64 == ncclFloat64 && kNcclBfloat16 == ncclBfloat16);
static_assert(kNcclSum == ncclSum && kNcclProduct == ncclProd && kNcclMax == ncclMax);
static_assert(kNcclMin == ncclMin && kNcclAverage == ncclAvg);
static_assert(kNcclScalarOfHost == ncclScalarHostImmediate);
static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(kNcclInProgress == ncclInProgress);
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));

TEST(NcclAbi, TheConfigurationBeginsAsThatOfTheHeader) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const NcclConfig ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_LE(ours.size, theirs.size);
}
#endif

}  // namespace
}  // namespace hvd
