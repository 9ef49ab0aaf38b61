#include "cmd/hvd_perf/cuda_side.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "cmd/hvd_perf/measure.h"
#include "runtime/base/text/format.h"

namespace hvd_perf {
namespace {

// A function of a library loaded here; null if the library lacks it.
template <typename Function>
Function* Seek(void* library, const char* symbol) {
  return reinterpret_cast<Function*>(::dlsym(library, symbol));
}
template <typename Function>
Function* Find(void* library, const char* symbol) {
  auto* function = Seek<Function>(library, symbol);
  if (function == nullptr) FailHere(std::string("there is no ") + symbol);
  return function;
}

void CheckCuda(const char* what, int answer) {
  if (answer != 0) FailHere(hvd::Format("{} answered {}", what, answer));
}

// The minimum over all ranks.
int64_t OnAll(int64_t value) {
  const int64_t extent = 1;
  hvd_tensor tensor{.struct_size = sizeof tensor,
                    .dtype = HVD_INT64,
                    .input = &value,
                    .output = &value,
                    .shape = &extent,
                    .ndim = 1};
  hvd_request request = RequestFor(&tensor, HVD_ALLREDUCE, "perf.nccl.ready");
  request.reduce_op = HVD_MIN;
  CheckHvd(hvd_run(&request), request.name);
  return value;
}

void ShareId(RawNccl::Id* id) {
  const int64_t extent = sizeof *id;
  hvd_tensor tensor{.struct_size = sizeof tensor,
                    .dtype = HVD_UINT8,
                    .input = id,
                    .output = id,
                    .shape = &extent,
                    .ndim = 1};
  hvd_request request = RequestFor(&tensor, HVD_BROADCAST, "perf.nccl.id");
  CheckHvd(hvd_run(&request), request.name);
}

unsigned long long AddressOf(const void* memory) {  // NOLINT(google-runtime-int): as in cuda.h
  return reinterpret_cast<uintptr_t>(memory);
}

}  // namespace

void FailHere(const std::string& what) {
  std::fprintf(stderr, "hvd_perf: rank %d: %s\n", hvd_rank(), what.c_str());
  std::exit(1);
}

void CheckHvd(int32_t status, const char* what) {
  if (status != HVD_OK) FailHere(std::string(what) + " failed: " + hvd_last_error());
}

hvd_request RequestFor(hvd_tensor* tensor, hvd_collective collective, const char* name) {
  hvd_request request{};
  request.struct_size = sizeof request;
  request.collective = collective;
  request.name = name;
  request.tensor = tensor;
  request.reduce_op = HVD_SUM;
  request.prescale = request.postscale = 1.0;
  return request;
}

// ---- the GPU

Gpu::Gpu() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) FailHere("there is no driver of NVIDIA's: libcuda.so.1 cannot be loaded");
  int count = 0, device = 0;
  void* context = nullptr;
  CheckCuda("cuInit", Find<int(unsigned)>(library, "cuInit")(0));
  CheckCuda("cuDeviceGetCount", Find<int(int*)>(library, "cuDeviceGetCount")(&count));
  if (count == 0) FailHere("the driver sees no GPU");
  index_ = hvd_local_rank() % count;
  CheckCuda("cuDeviceGet", Find<int(int*, int)>(library, "cuDeviceGet")(&device, index_));
  CheckCuda("cuDevicePrimaryCtxRetain",
            Find<int(void**, int)>(library, "cuDevicePrimaryCtxRetain")(&context, device));
  CheckCuda("cuCtxPushCurrent_v2", Find<int(void*)>(library, "cuCtxPushCurrent_v2")(context));
  CheckCuda(
      "cuStreamCreateWithPriority",
      Find<int(void**, unsigned, int)>(library, "cuStreamCreateWithPriority")(&stream_, 1, 0));
  allocate_ = Find<int(unsigned long long*, size_t)>(library, "cuMemAlloc_v2");
  free_ = Find<int(unsigned long long)>(library, "cuMemFree_v2");
  allocate_host_ = Find<int(void**, size_t, unsigned)>(library, "cuMemHostAlloc");
  free_host_ = Find<int(void*)>(library, "cuMemFreeHost");
  copy_in_ =
      Find<int(unsigned long long, const void*, size_t, void*)>(library, "cuMemcpyHtoDAsync_v2");
  copy_out_ = Find<int(void*, unsigned long long, size_t, void*)>(library, "cuMemcpyDtoHAsync_v2");
  copy_ = Find<int(unsigned long long, unsigned long long, size_t, void*)>(library,
                                                                           "cuMemcpyDtoDAsync_v2");
  synchronize_ = Find<int(void*)>(library, "cuStreamSynchronize");
}

void Gpu::Synchronize() { CheckCuda("cuStreamSynchronize", synchronize_(stream_)); }

void Gpu::Allocate(size_t bytes) {
  CheckCuda("cuMemAlloc_v2", allocate_(&device_, bytes));
  CheckCuda("cuMemHostAlloc", allocate_host_(reinterpret_cast<void**>(&host_), bytes, 1));
}

void Gpu::Free() {
  CheckCuda("cuMemFree_v2", free_(device_));
  CheckCuda("cuMemFreeHost", free_host_(host_));
}

void Gpu::CopyIn(size_t bytes) {
  CheckCuda("cuMemcpyHtoDAsync_v2", copy_in_(device_, host_, bytes, stream_));
}

void Gpu::CopyOut(size_t bytes) {
  CheckCuda("cuMemcpyDtoHAsync_v2", copy_out_(host_, device_, bytes, stream_));
  Synchronize();
}

void Gpu::Copy(void* to, const void* from, size_t bytes) {
  CheckCuda("cuMemcpyDtoDAsync_v2", copy_(AddressOf(to), AddressOf(from), bytes, stream_));
}

// ---- NCCL

RawNccl::RawNccl() {
  library_ = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (OnAll(library_ == nullptr ? 0 : 1) == 0) return;
  Id id{};
  if (hvd_rank() == 0) Find<int(Id*)>(library_, "ncclGetUniqueId")(&id);
  ShareId(&id);
  const int answer = Find<int(void**, int, Id, int)>(library_, "ncclCommInitRank")(
      &comm_, hvd_size(), id, hvd_rank());
  ok_ = OnAll(answer == 0 ? 1 : 0) != 0;
  all_reduce_ =
      Find<int(const void*, void*, size_t, int, int, void*, void*)>(library_, "ncclAllReduce");
  group_start_ = Find<int()>(library_, "ncclGroupStart");
  group_end_ = Find<int()>(library_, "ncclGroupEnd");
}

RawNccl::~RawNccl() {
  if (ok_) Find<int(void*)>(library_, "ncclCommDestroy")(comm_);
}

void RawNccl::AllReduce(void* data, size_t count, void* stream) {
  constexpr int kFloat32 = 7, kSum = 0;
  if (all_reduce_(data, data, count, kFloat32, kSum, comm_, stream) != 0)
    FailHere("ncclAllReduce failed");
}

void RawNccl::Group(const std::function<void()>& calls) {
  if (group_start_() != 0) FailHere("ncclGroupStart failed");
  calls();
  if (group_end_() != 0) FailHere("ncclGroupEnd failed");
}

Times TimeOf(Gpu& gpu, int rounds, const std::function<void()>& call) {
  gpu.Synchronize();
  const double start = Seconds();
  for (int round = 0; round < rounds; ++round) call();
  const double given = Seconds();
  gpu.Synchronize();
  return {(Seconds() - start) / rounds * 1e6, (given - start) / rounds * 1e6};
}

}  // namespace hvd_perf
