// ShmPeers: Peers over the request rings of a job page. SEGMENT.md describes the ring.
#ifndef HVD_RUNTIME_BACKENDS_SHM_SHM_PEERS_H_
#define HVD_RUNTIME_BACKENDS_SHM_SHM_PEERS_H_

#include <vector>

#include "runtime/backends/peers.h"
#include "runtime/segment/job_page.h"

namespace hvd {

class ShmPeers final : public Peers {
 public:
  // The page outlives this object.
  ShmPeers(JobPage page, uint32_t rank);

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return page_.local_size(); }
  size_t max_record() const override { return ring_bytes_ / 4; }
  std::span<std::byte> Reserve(size_t bytes) override;
  void Commit() override;
  std::span<const std::byte> Peek(uint32_t peer) override;
  void Consume(uint32_t peer) override;
  bool broken() const override { return page_.broken(); }
  std::string broken_text() const override { return page_.broken_text(); }
  bool HasLeft(uint32_t peer) const override;
  void WakeAll() override;
  void Nudge() override;
  void WakeSelf() override;
  void NoteSubmitted(uint32_t collective, std::string_view name) override;
  void NoteSleeping(int64_t since_ns) override;
  void NoteFailed() override;
  uint32_t AnnounceSleep() override;
  void Sleep(uint32_t token, int64_t timeout_ns) override;
  void EndSleep() override;

 private:
  // Precedes every record, 16-byte aligned. A record never wraps around the end of the ring.
  struct Frame {
    std::atomic<uint64_t> commit;  // Stamp(position of this frame in the stream); written last
    uint32_t bytes;  // of the record; kSkip: the stream continues at the start of the ring
    uint32_t reserved;
  };
  static constexpr uint32_t kSkip = 0xffffffff;
  static_assert(sizeof(Frame) == 16);

  Frame& FrameAt(uint32_t owner, uint64_t position) const;
  uint64_t SlowestReader() const;
  bool HasRoom(uint64_t bytes);
  void Publish(uint64_t position, uint32_t record_bytes);
  uint64_t Stamp(uint64_t position) const;
  void CheckInRing(uint64_t position, uint32_t record_bytes) const;

  JobPage page_;
  uint32_t rank_;
  uint64_t ring_bytes_;
  uint64_t salt_;                // of the stamps, the generation
  uint64_t tail_ = 0;            // position of the next own frame
  uint64_t slowest_ = 0;         // SlowestReader() when last looked
  uint32_t reserved_bytes_ = 0;  // of the record between Reserve and Commit
  std::vector<uint64_t> heads_;  // next unread position of each peer's stream
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_SHM_SHM_PEERS_H_
