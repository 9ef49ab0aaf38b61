// InterHostComm for leaders that are threads of one process: the plain model that the real one is
// tested against. Every collective is an exchange of copies through mailboxes, added up in the
// order of the leaders.
#ifndef HVD_TEST_FAKES_INPROC_INPROC_INTER_HOST_COMM_H_
#define HVD_TEST_FAKES_INPROC_INPROC_INTER_HOST_COMM_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/backends/inter_host_comm.h"

namespace hvd {

// The state that all leaders of one job share. Outlives their InterHostComm objects.
class InprocInterHostHub {
 public:
  // Called before a message goes out, in the thread of its sender: tests count here, and make
  // messages late.
  using OnSend = std::function<void(uint32_t from, size_t bytes)>;
  explicit InprocInterHostHub(OnSend on_send = {}) : on_send_(std::move(on_send)) {}

 private:
  friend class InprocInterHostComm;
  // Receiver, tag, and whether it belongs to a collective.
  using Box = std::tuple<uint32_t, uint64_t, bool>;

  const OnSend on_send_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Box, std::deque<InterHostMessage>> boxes_;
  std::map<uint32_t, Status> left_;
  Status aborted_;  // not ok: by whoever was first
};

class InprocInterHostComm final : public InterHostComm, private InterHostSteps {
 public:
  InprocInterHostComm(InprocInterHostHub& hub, uint32_t rank) : hub_(hub), rank_(rank) {}
  ~InprocInterHostComm() override;

  std::string_view name() const override { return "inproc"; }
  Status Allreduce(const InterHostCall& call, const ReduceSpec& spec, const void* input,
                   void* output, size_t count) override;
  Status Broadcast(const InterHostCall& call, uint32_t root, void* data, size_t bytes) override;
  Status Allgatherv(const InterHostCall& call, const void* input, std::span<const size_t> bytes,
                    void* output) override;
  Status Alltoallv(const InterHostCall& call, const void* input, std::span<const size_t> send_bytes,
                   void* output, std::span<const size_t> receive_bytes) override;
  Status Reducescatterv(const InterHostCall& call, const ReduceSpec& spec, const void* input,
                        std::span<const size_t> counts, void* output) override;
  Status Send(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
              TimePoint deadline) override;
  Result<InterHostMessage> Receive(uint32_t rank, uint64_t tag, TimePoint deadline) override;
  void Wake() override;
  bool CopiesByPart() const override { return true; }
  InterHostSteps* steps() override { return this; }
  std::vector<InterHostSilence> Silences() const override { return {}; }
  void Abort(const Status& why) override;

 private:
  class Sum;

  // InterHostSteps
  Status Post(uint32_t rank, uint64_t tag, MessageBytes bytes) override;
  Status Flush(TimePoint) override { return Status::Ok(); }
  size_t MostSumBytes(size_t) const override { return 4096; }
  std::unique_ptr<InterHostSum> BeginSum(const InterHostCall& call, const ReduceSpec& spec,
                                         const void* input, void* output, size_t count) override;

  Status Put(uint32_t rank, uint64_t tag, bool collective, std::string bytes);
  Result<InterHostMessage> Take(uint32_t rank, uint64_t tag, bool collective, TimePoint deadline);
  // Gives pieces[i] to leader i and gets what each leader gave this one.
  Result<std::vector<std::string>> Exchange(const InterHostCall& call,
                                            const std::vector<std::string>& pieces);

  InprocInterHostHub& hub_;
  const uint32_t rank_;
  bool wake_ = false;  // guarded by the hub's mutex
};

}  // namespace hvd

#endif  // HVD_TEST_FAKES_INPROC_INPROC_INTER_HOST_COMM_H_
