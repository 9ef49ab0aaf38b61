// The base of fakes that take part in the coordination between hosts and in no collective.
#ifndef HVD_TEST_FAKES_REFUSING_INTER_HOST_COMM_H_
#define HVD_TEST_FAKES_REFUSING_INTER_HOST_COMM_H_

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/backends/inter_host_comm.h"

namespace hvd::test {

class RefusingInterHostComm : public InterHostComm {
 public:
  Status Allreduce(const InterHostCall&, const ReduceSpec&, const void*, void*, size_t) override {
    return Internal("no");
  }
  Status Broadcast(const InterHostCall&, uint32_t, void*, size_t) override {
    return Internal("no");
  }
  Status Allgatherv(const InterHostCall&, const void*, std::span<const size_t>, void*) override {
    return Internal("no");
  }
  Status Alltoallv(const InterHostCall&, const void*, std::span<const size_t>, void*,
                   std::span<const size_t>) override {
    return Internal("no");
  }
  Status Reducescatterv(const InterHostCall&, const ReduceSpec&, const void*,
                        std::span<const size_t>, void*) override {
    return Internal("no");
  }
  std::vector<InterHostSilence> Silences() const override { return {}; }
};

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_REFUSING_INTER_HOST_COMM_H_
