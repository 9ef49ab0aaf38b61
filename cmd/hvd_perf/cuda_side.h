// The rank's GPU and NCCL by themselves, for hvd_perf --device cuda: by the driver and by NCCL's
// library, which are loaded here; nothing of CUDA is linked or included. A call that fails ends the
// program.
#ifndef HVD_CMD_HVD_PERF_CUDA_SIDE_H_
#define HVD_CMD_HVD_PERF_CUDA_SIDE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "hvd/hvd.h"

namespace hvd_perf {

[[noreturn]] void FailHere(const std::string& what);
void CheckHvd(int32_t status, const char* what);
// A sum; both pointers stay with the request.
hvd_request RequestFor(hvd_tensor* tensor, hvd_collective collective, const char* name);

// The context that libhvd_cuda.so uses as well, a stream, and one piece of memory.
class Gpu {
 public:
  Gpu();

  int index() const { return index_; }
  void* stream() const { return stream_; }
  void Synchronize();

  // Memory of the device and as much of the host, pinned.
  void Allocate(size_t bytes);
  void Free();
  float* host() const { return host_; }
  void* device() const { return reinterpret_cast<void*>(device_); }
  void CopyIn(size_t bytes);
  void CopyOut(size_t bytes);
  // Within the device, in the stream.
  void Copy(void* to, const void* from, size_t bytes);

 private:
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
  int (*copy_out_)(void*, unsigned long long, size_t, void*) = nullptr;           // NOLINT
  int (*copy_)(unsigned long long, unsigned long long, size_t, void*) = nullptr;  // NOLINT
  int (*synchronize_)(void*) = nullptr;
};

// NCCL by itself. Its answer to the start is kept: it may refuse these ranks.
class RawNccl {
 public:
  struct Id {
    char bytes[128];
  };

  // Every rank calls this; ok() then says whether there is a communicator on all of them.
  RawNccl();
  ~RawNccl();
  RawNccl(const RawNccl&) = delete;
  RawNccl& operator=(const RawNccl&) = delete;

  bool ok() const { return ok_; }
  // In place.
  void AllReduce(void* data, size_t count, void* stream);
  // All calls that `calls` makes, in one group.
  void Group(const std::function<void()>& calls);

 private:
  void* library_ = nullptr;
  void* comm_ = nullptr;
  int (*all_reduce_)(const void*, void*, size_t, int, int, void*, void*) = nullptr;
  int (*group_start_)() = nullptr;
  int (*group_end_)() = nullptr;
  bool ok_ = false;
};

struct Times {
  double us = 0;       // per call, until the GPU is done
  double host_us = 0;  // of it, what the calls take of the processor
};

// Of `rounds` calls.
Times TimeOf(Gpu& gpu, int rounds, const std::function<void()>& call);

}  // namespace hvd_perf

#endif  // HVD_CMD_HVD_PERF_CUDA_SIDE_H_
