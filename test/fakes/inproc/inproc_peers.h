// InprocPeers: Peers among threads of one process, as plain as can be: the model that ShmPeers is
// checked against.
#ifndef HVD_TEST_FAKES_INPROC_INPROC_PEERS_H_
#define HVD_TEST_FAKES_INPROC_INPROC_PEERS_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/backends/peers.h"

namespace hvd {

// The state that the ranks of one group share.
class InprocGroup {
 public:
  // A rank may be at most `capacity` records ahead of the slowest reader.
  explicit InprocGroup(uint32_t size, size_t capacity = 1024);

  // As the agent does when a rank died. Thread-safe.
  void Break(std::string text);

 private:
  friend class InprocPeers;
  using Record = std::shared_ptr<const std::vector<std::byte>>;

  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t changes_ = 0;
  std::vector<std::vector<std::deque<Record>>> unread_;  // [reader][writer]
  std::vector<bool> left_;
  std::string broken_text_;
  bool broken_ = false;
};

class InprocPeers final : public Peers {
 public:
  // The group outlives this object; one object per rank.
  InprocPeers(InprocGroup& group, uint32_t rank) : group_(group), rank_(rank) {}
  ~InprocPeers() override;  // leaves the group

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return static_cast<uint32_t>(group_.left_.size()); }
  size_t max_record() const override { return 65536; }
  std::span<std::byte> Reserve(size_t bytes) override;
  void Commit() override;
  std::span<const std::byte> Peek(uint32_t peer) override;
  void Consume(uint32_t peer) override;
  bool broken() const override;
  std::string broken_text() const override;
  bool HasLeft(uint32_t peer) const override;
  void WakeAll() override;
  void Nudge() override { WakeAll(); }
  void WakeSelf() override { WakeAll(); }
  void NoteSubmitted(uint32_t, std::string_view) override {}
  void NoteFailed() override {}
  void NoteSleeping(int64_t) override {}
  uint32_t AnnounceSleep() override;
  void Sleep(uint32_t token, int64_t timeout_ns) override;
  void EndSleep() override {}

 private:
  InprocGroup& group_;
  const uint32_t rank_;
  std::vector<std::byte> reserved_;
};

}  // namespace hvd

#endif  // HVD_TEST_FAKES_INPROC_INPROC_PEERS_H_
