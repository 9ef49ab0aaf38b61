// The members of a world over FakeNccl, each with a device of its own, driven in turn by one
// thread.
#ifndef HVD_TEST_UNIT_CUDA_NCCL_WORLD_H_
#define HVD_TEST_UNIT_CUDA_NCCL_WORLD_H_

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/nccl/nccl_comm.h"
#include "runtime/device/cuda/cuda_device.h"
#include "test/fakes/cuda/fake_cuda.h"
#include "test/fakes/memory_kv_store.h"
#include "test/fakes/nccl/fake_nccl.h"

namespace hvd::test {

class NcclWorld {
 public:
  explicit NcclWorld(uint32_t size, int version = 23007, int slowness = 0) {
    cuda.devices = static_cast<int>(size);
    nccl.version = version;
    nccl.slowness = slowness;
    library = nccl.Library();
    for (uint32_t rank = 0; rank < size; ++rank) {
      auto device = CudaDevice::Open(
          cuda.Driver(),
          {.rank = rank, .ordinal = static_cast<int>(rank), .kernels = &kKernelsOfWorld});
      if (!device.ok()) std::abort();
      devices.push_back(std::move(*device));
    }
    comms.resize(size);
  }

  uint32_t size() const { return static_cast<uint32_t>(devices.size()); }
  NcclCommOptions Options(uint32_t rank, uint32_t index, uint32_t size, std::string set) const {
    return {.member = {rank, index, size, set, devices[rank]->name()},
            .key = "nccl/" + set,
            .start_limit = std::chrono::seconds(30),
            .close_limit = std::chrono::seconds(5),
            .store_wait = {}};
  }
  void Begin(uint32_t rank) {
    comms[rank] = NcclComm::Begin(library, store, Options(rank, rank, size(), "world"), now);
  }
  // All members that have begun, until each is done or has failed; false if some is not.
  bool AdvanceAll() { return AdvanceAll(comms); }
  bool AdvanceAll(std::vector<std::unique_ptr<NcclComm>>& some) {
    bool done = false;
    for (int round = 0; round < 20 && !done; ++round) {
      done = true;
      for (uint32_t rank = 0; rank < some.size(); ++rank) {
        if (some[rank] == nullptr) continue;
        const Result<bool> result = Advance(*some[rank], rank);
        if (result.ok() && !*result) done = false;
      }
    }
    return done;
  }
  Result<bool> Advance(NcclComm& comm, uint32_t rank) {
    Result<bool> done = false;
    const Status status = devices[rank]->With([&](CuStream) {
      done = comm.Advance(now);
      return done.status();
    });
    return status.ok() ? done : status;
  }
  // All begin and become ready.
  void Start() {
    for (uint32_t rank = 0; rank < size(); ++rank) Begin(rank);
    ASSERT_TRUE(AdvanceAll());
    for (uint32_t rank = 0; rank < size(); ++rank) {
      const Result<bool> ready = Advance(*comms[rank], rank);
      ASSERT_TRUE(ready.ok()) << ready.status().message();
    }
  }
  void Close() {
    for (uint32_t rank = 0; rank < size(); ++rank) {
      const Status status = devices[rank]->With([&](CuStream) { return comms[rank]->Close(now); });
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_TRUE(AdvanceAll());
  }
  // Drops all, and sees that nothing is left and no rule was broken.
  void ExpectClean() {
    comms.clear();
    devices.clear();
    EXPECT_TRUE(nccl.Leaks().empty()) << nccl.Leaks().front();
    EXPECT_TRUE(nccl.Complaints().empty()) << nccl.Complaints().front();
    EXPECT_TRUE(cuda.Leaks().empty()) << cuda.Leaks().front();
    EXPECT_TRUE(cuda.Complaints().empty()) << cuda.Complaints().front();
  }

  FakeCuda cuda;
  FakeNccl nccl{cuda};
  MemoryKvStore store;
  NcclLibrary library;
  TimePoint now{};
  std::vector<std::unique_ptr<CudaDevice>> devices;
  std::vector<std::unique_ptr<NcclComm>> comms;

 private:
  static constexpr int kKernelsOfWorld = 0;  // stands for the fat binary
};

}  // namespace hvd::test

#endif  // HVD_TEST_UNIT_CUDA_NCCL_WORLD_H_
