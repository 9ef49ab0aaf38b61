#include "cmd/hvd_perf/cuda_perf.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "hvd/hvd.h"

namespace hvd_perf {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "hvd_perf: rank %d: %s\n", hvd_rank(), what.c_str());
  std::exit(1);
}

void Check(int32_t status, const char* what) {
  if (status != HVD_OK) Fail(std::string(what) + " failed: " + hvd_last_error());
}

// A function of a library that is loaded here.
template <typename Function>
Function* Find(void* library, const char* symbol) {
  auto* function = reinterpret_cast<Function*>(::dlsym(library, symbol));
  if (function == nullptr) Fail(std::string("there is no ") + symbol);
  return function;
}

// The rank's GPU, in the context that libhvd_cuda.so uses as well.
class Gpu {
 public:
  Gpu() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) Fail("there is no driver of NVIDIA's: libcuda.so.1 cannot be loaded");
    int count = 0, device = 0;
    void* context = nullptr;
    Check("cuInit", Find<int(unsigned)>(library, "cuInit")(0));
    Check("cuDeviceGetCount", Find<int(int*)>(library, "cuDeviceGetCount")(&count));
    if (count == 0) Fail("the driver sees no GPU");
    index_ = hvd_local_rank() % count;
    Check("cuDeviceGet", Find<int(int*, int)>(library, "cuDeviceGet")(&device, index_));
    Check("cuDevicePrimaryCtxRetain",
          Find<int(void**, int)>(library, "cuDevicePrimaryCtxRetain")(&context, device));
    Check("cuCtxPushCurrent_v2", Find<int(void*)>(library, "cuCtxPushCurrent_v2")(context));
    Check("cuStreamCreateWithPriority",
          Find<int(void**, unsigned, int)>(library, "cuStreamCreateWithPriority")(&stream_, 1, 0));
    allocate_ = Find<int(unsigned long long*, size_t)>(library, "cuMemAlloc_v2");
    free_ = Find<int(unsigned long long)>(library, "cuMemFree_v2");
    allocate_host_ = Find<int(void**, size_t, unsigned)>(library, "cuMemHostAlloc");
    free_host_ = Find<int(void*)>(library, "cuMemFreeHost");
    copy_in_ =
        Find<int(unsigned long long, const void*, size_t, void*)>(library, "cuMemcpyHtoDAsync_v2");
    copy_out_ =
        Find<int(void*, unsigned long long, size_t, void*)>(library, "cuMemcpyDtoHAsync_v2");
    synchronize_ = Find<int(void*)>(library, "cuStreamSynchronize");
  }

  int index() const { return index_; }
  void* stream() const { return stream_; }
  void Synchronize() { Check("cuStreamSynchronize", synchronize_(stream_)); }

  // Memory of the device and as much of the host, pinned.
  void Allocate(size_t bytes) {
    Check("cuMemAlloc_v2", allocate_(&device_, bytes));
    Check("cuMemHostAlloc", allocate_host_(reinterpret_cast<void**>(&host_), bytes, 1));
  }
  void Free() {
    Check("cuMemFree_v2", free_(device_));
    Check("cuMemFreeHost", free_host_(host_));
  }
  float* host() const { return host_; }
  void* device() const { return reinterpret_cast<void*>(device_); }
  void CopyIn(size_t bytes) { Check("cuMemcpyHtoD", copy_in_(device_, host_, bytes, stream_)); }
  void CopyOut(size_t bytes) {
    Check("cuMemcpyDtoH", copy_out_(host_, device_, bytes, stream_));
    Synchronize();
  }

 private:
  static void Check(const char* what, int answer) {
    if (answer == 0) return;
    std::fprintf(stderr, "hvd_perf: rank %d: %s answered %d\n", hvd_rank(), what, answer);
    std::exit(1);
  }

  int index_ = 0;
  void* stream_ = nullptr;
  unsigned long long device_ = 0;  // NOLINT(google-runtime-int): as in cuda.h
  float* host_ = nullptr;
  int (*allocate_)(unsigned long long*, size_t) = nullptr;  // NOLINT(google-runtime-int)
  int (*free_)(unsigned long long) = nullptr;               // NOLINT(google-runtime-int)
  int (*allocate_host_)(void**, size_t, unsigned) = nullptr;
  int (*free_host_)(void*) = nullptr;
  int (*copy_in_)(unsigned long long, const void*, size_t,  // NOLINT(google-runtime-int)
                  void*) = nullptr;
  int (*copy_out_)(void*, unsigned long long, size_t, void*) = nullptr;  // NOLINT
  int (*synchronize_)(void*) = nullptr;
};

hvd_request Request(hvd_tensor* tensor, hvd_collective collective, const char* name) {
  hvd_request request{};
  request.struct_size = sizeof request;
  request.collective = collective;
  request.name = name;
  request.tensor = tensor;
  request.reduce_op = HVD_SUM;
  request.prescale = request.postscale = 1.0;
  return request;
}

// NCCL by itself. Its answer is kept instead of ending the program: it may refuse.
class RawNccl {
 public:
  struct Id {
    char bytes[128];
  };

  // Every rank calls this; ok() then says whether there is a communicator on all of them.
  RawNccl() {
    library_ = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    int64_t ready = library_ == nullptr ? 0 : 1;
    ready = OnAll(ready);
    if (ready == 0) return;
    Id id{};
    if (hvd_rank() == 0) Find<int(Id*)>(library_, "ncclGetUniqueId")(&id);
    ShareId(&id);
    const int answer = Find<int(void**, int, Id, int)>(library_, "ncclCommInitRank")(
        &comm_, hvd_size(), id, hvd_rank());
    ok_ = OnAll(answer == 0 ? 1 : 0) != 0;
    all_reduce_ =
        Find<int(const void*, void*, size_t, int, int, void*, void*)>(library_, "ncclAllReduce");
  }
  ~RawNccl() {
    if (ok_) Find<int(void*)>(library_, "ncclCommDestroy")(comm_);
  }

  bool ok() const { return ok_; }
  void AllReduce(void* data, size_t count, void* stream) {
    constexpr int kFloat32 = 7, kSum = 0;
    if (all_reduce_(data, data, count, kFloat32, kSum, comm_, stream) != 0)
      Fail("ncclAllReduce failed");
  }

 private:
  // The least of all ranks.
  static int64_t OnAll(int64_t value) {
    const int64_t extent = 1;
    hvd_tensor tensor{.struct_size = sizeof tensor,
                      .dtype = HVD_INT64,
                      .input = &value,
                      .output = &value,
                      .shape = &extent,
                      .ndim = 1};
    hvd_request request = Request(&tensor, HVD_ALLREDUCE, "perf.nccl.ready");
    request.reduce_op = HVD_MIN;
    Check(hvd_run(&request), request.name);
    return value;
  }
  static void ShareId(Id* id) {
    const int64_t extent = sizeof *id;
    hvd_tensor tensor{.struct_size = sizeof tensor,
                      .dtype = HVD_UINT8,
                      .input = id,
                      .output = id,
                      .shape = &extent,
                      .ndim = 1};
    hvd_request request = Request(&tensor, HVD_BROADCAST, "perf.nccl.id");
    Check(hvd_run(&request), request.name);
  }

  void* library_ = nullptr;
  void* comm_ = nullptr;
  int (*all_reduce_)(const void*, void*, size_t, int, int, void*, void*) = nullptr;
  bool ok_ = false;
};

struct Times {
  double us = 0;       // per call, until the GPU is done
  double host_us = 0;  // of it, what the calls take of the processor
};

template <typename Call>
Times Measure(Gpu& gpu, int rounds, int loops, Call call) {
  std::vector<double> all, host;
  for (int loop = -1; loop < loops; ++loop) {  // the first one warms up
    gpu.Synchronize();
    const double start = Seconds();
    for (int round = 0; round < rounds; ++round) call();
    const double given = Seconds();
    gpu.Synchronize();
    if (loop < 0) continue;
    all.push_back((Seconds() - start) / rounds * 1e6);
    host.push_back((given - start) / rounds * 1e6);
  }
  return {hvd::Median(std::move(all)), hvd::Median(std::move(host))};
}

bool SumIsCorrect(Gpu& gpu, size_t count) {
  gpu.CopyOut(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    float expected = 0;
    for (int r = 0; r < hvd_size(); ++r) expected += InputAt(i, r, 0);
    if (gpu.host()[i] == expected) continue;
    std::fprintf(stderr, "WRONG: rank %d, element %zu of %zu is %g, expected %g\n", hvd_rank(), i,
                 count, static_cast<double>(gpu.host()[i]), static_cast<double>(expected));
    return false;
  }
  return true;
}

void Print(const Options& options, size_t bytes, const Times& ours,
           const std::optional<Times>& nccl, bool correct) {
  if (options.json) {
    std::printf(
        "{\"collective\": \"allreduce\", \"device\": \"cuda\", \"ranks\": %d, \"bytes\": %zu, "
        "\"us\": %.3f, \"host_us\": %.3f, ",
        hvd_size(), bytes, ours.us, ours.host_us);
    if (nccl) std::printf("\"nccl_us\": %.3f, \"nccl_host_us\": %.3f, ", nccl->us, nccl->host_us);
    std::printf("\"by_nccl\": %s, \"correct\": %s}\n", hvd_enabled("nccl") == 1 ? "true" : "false",
                correct ? "true" : "false");
  } else {
    std::printf("allreduce %12zu B  %10.2f us, host %8.2f us", bytes, ours.us, ours.host_us);
    if (nccl) std::printf("   raw NCCL %10.2f us, host %8.2f us", nccl->us, nccl->host_us);
    std::printf("   %s\n", correct ? "verified" : "WRONG");
  }
  std::fflush(stdout);
}

bool MeasureSize(Gpu& gpu, RawNccl& nccl, const Options& options, size_t bytes) {
  const size_t count = bytes / sizeof(float);
  const auto extent = static_cast<int64_t>(count);
  gpu.Allocate(std::max<size_t>(bytes, sizeof(float)));
  hvd_tensor tensor{.struct_size = sizeof tensor,
                    .dtype = HVD_FLOAT32,
                    .input = gpu.device(),
                    .output = gpu.device(),
                    .shape = &extent,
                    .ndim = 1,
                    .device_kind = HVD_DEVICE_CUDA,
                    .device_index = gpu.index(),
                    .stream = gpu.stream()};
  const hvd_request request = Request(&tensor, HVD_ALLREDUCE, "perf.cuda");
  for (size_t i = 0; i < count; ++i) gpu.host()[i] = InputAt(i, hvd_rank(), 0);
  gpu.CopyIn(bytes);
  Check(hvd_run(&request), request.name);
  const bool correct = SumIsCorrect(gpu, count);
  const int rounds = std::max(5, RoundsFor(bytes) / 10);
  const Times ours =
      Measure(gpu, rounds, options.loops, [&] { Check(hvd_run(&request), request.name); });
  std::optional<Times> raw;
  if (nccl.ok()) {
    raw = Measure(gpu, rounds, options.loops,
                  [&] { nccl.AllReduce(gpu.device(), count, gpu.stream()); });
  }
  if (hvd_rank() == 0) Print(options, bytes, ours, raw, correct);
  gpu.Free();
  return correct;
}

}  // namespace

bool RunOnCuda(const Options& options) {
  if (options.collective != "allreduce") Fail("--device cuda measures --collective allreduce only");
  Gpu gpu;
  RawNccl nccl;
  if (!nccl.ok() && hvd_rank() == 0)
    std::fprintf(stderr,
                 "hvd_perf: raw NCCL is left out: it is not there, or refuses these ranks\n");
  bool correct = true;
  for (size_t bytes : options.sizes) correct = MeasureSize(gpu, nccl, options, bytes) && correct;
  return correct;
}

}  // namespace hvd_perf
