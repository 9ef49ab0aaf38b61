// JobPage: the memory shared by all ranks of one host during one generation. SEGMENT.md describes
// its layout.
//
// Created and formatted by the agent, a new page per generation (so that a rank of an older
// generation can never write into it), mapped by every local rank. A JobPage is a view: it owns
// nothing and may be copied. "rank" here is the local rank.
#ifndef HVD_RUNTIME_SEGMENT_JOB_PAGE_H_
#define HVD_RUNTIME_SEGMENT_JOB_PAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/base/status.h"
#include "runtime/segment/stall_board.h"
#include "runtime/segment/tuned_settings.h"

namespace hvd {

inline constexpr size_t kCacheLine = 64;

struct PageHeader {
  uint64_t magic;
  uint32_t layout_version;
  uint32_t local_size;
  uint64_t generation;
  uint64_t total_bytes;
  uint64_t block_offset;  // of rank 0's block from the page start
  uint64_t block_stride;  // from one rank's block to the next
  uint64_t ring_offset;   // within a block
  uint64_t ring_bytes;    // a power of two
  uint64_t trace_offset;  // within a block
  uint64_t trace_bytes;   // of a trace ring (runtime/trace/ring.h)

  // Written once, by the agent. 0: intact. 1: broken; broken_text is then complete.
  alignas(kCacheLine) std::atomic<uint32_t> broken;
  char broken_text[1020];

  // A commit at which all ranks act together (commit_point.h); written by the agent.
  // Not 0: a rank waits at its next commit until act_at says where.
  alignas(kCacheLine) std::atomic<uint32_t> hold;
  std::atomic<uint32_t> update;         // CommitUpdate bits; complete once act_at is not 0
  std::atomic<uint64_t> act_at;         // the commit at which all ranks act; 0: not known yet
  std::atomic<uint32_t> stop_grace_ms;  // with kUpdateStop: time for ranks to exit; 0: no limit

  // For a job that is tuned; written by the agent.
  alignas(kCacheLine) TunedSettings tuned;
};

// Why the ranks act at a commit. Also in hvd.h.
enum CommitUpdate : uint32_t {
  kUpdateRemoved = 1,  // ranks will be missing in the next generation
  kUpdateAdded = 2,    // ranks will be new in the next generation
  kUpdateStop = 4,     // the job ends here
};

// What a rank sleeps on. Anyone may ring; only the rank's own threads sleep. SEGMENT.md has the
// rule.
struct alignas(kCacheLine) Doorbell {
  std::atomic<uint32_t> word;      // incremented by each ring
  std::atomic<uint32_t> sleeping;  // the rank's threads that sleep on `word` or are about to
};

enum class RankState : uint32_t { kAbsent = 0, kIn = 1, kLeft = 2 };

// The last operation of a rank, to explain a stall or a death. Written only by the rank, read by
// the agent.
struct LastCollective {
  std::atomic<uint64_t>
      sequence;  // grows by 2 with each submission; odd while the name is being changed
  // Not 0: a collective failed because of other ranks; whatever the rank does from now on is a
  // consequence.
  std::atomic<uint64_t> failed;
  std::atomic<uint64_t>
      started_ns;  // steady clock: when the rank began to sleep for a peer; 0: awake
  std::atomic<uint32_t> collective;  // hvd_collective
  std::atomic<uint32_t> waiting;     // 1 while the rank sleeps for a peer
  char name[64];                     // truncated, zero-terminated
};

// The fixed head of a rank's block; the cursors, the request ring and the trace ring follow.
struct RankBlock {
  Doorbell bell;                                    // for application threads inside hvd_wait
  Doorbell runtime_bell;                            // for the rank's runtime thread
  alignas(kCacheLine) std::atomic<uint32_t> state;  // RankState, written by the rank
  std::atomic<uint32_t> pid;
  std::atomic<uint64_t> commits;  // commits that the rank has reached, written by the rank
  // The robust futex: the thread id of the rank's runtime thread while it is alive and in the
  // generation (AliveMark).
  alignas(kCacheLine) std::atomic<uint32_t> alive;
  alignas(kCacheLine) LastCollective last;
  StallBoard stalls;
  // consumed[w]: bytes of rank w's ring that this rank has read. Written only by this rank.
  alignas(kCacheLine) std::atomic<uint64_t> consumed[];
};

class JobPage {
 public:
  static constexpr uint32_t kLayoutVersion = 5;

  JobPage() = default;

  // Size of a page for `local_size` ranks (1 to 4,096).
  static size_t BytesFor(uint32_t local_size);
  // Formats zeroed memory of BytesFor(local_size) bytes. Agent only, before anyone else maps it.
  static JobPage Format(std::byte* base, uint32_t local_size, uint64_t generation);
  // Views memory that the agent formatted; an error if it is not a page of this layout or does not
  // fit `bytes`.
  static Result<JobPage> View(std::byte* base, size_t bytes);

  bool valid() const { return base_ != nullptr; }
  PageHeader& header() const { return *reinterpret_cast<PageHeader*>(base_); }
  uint32_t local_size() const { return ranks_; }
  RankBlock& rank(uint32_t r) const { return *reinterpret_cast<RankBlock*>(Block(r)); }
  // The request ring of rank r: written by r, read by all.
  std::span<std::byte> ring(uint32_t r) const { return {Block(r) + ring_offset_, ring_bytes_}; }
  // The trace ring of rank r: written by r, read by the agent.
  std::span<std::byte> trace(uint32_t r) const {
    return {Block(r) + ring_offset_ + ring_bytes_, trace_bytes_};
  }

  bool broken() const { return header().broken.load(std::memory_order_acquire) != 0; }
  std::string broken_text() const;

  // Marks the generation broken with a reason (truncated to 1,019 bytes) and rings all ranks. The
  // first call wins. Call from one process only (the agent), one thread at a time.
  void Break(std::string_view sentence) const;

  // The agent's side of commit_point.h, which has the rules. From one thread at a time.
  //
  // From here on no rank passes another commit without an answer; Commits and MostCommits then
  // count every commit passed before.
  void HoldCommits() const;
  // Number of commits that rank r has reached.
  uint64_t Commits(uint32_t r) const { return rank(r).commits.load(std::memory_order_seq_cst); }
  // The largest of them.
  uint64_t MostCommits() const;
  // Makes all ranks act at this commit (from 1), which must be larger than MostCommits() of every
  // host after its HoldCommits(). `update`: CommitUpdate bits, not 0. `grace_ms`: how long the job
  // waits for the ranks to stop; 0: no limit. At most once per page.
  void ActAt(uint64_t commit, uint32_t update, uint32_t grace_ms) const;

  // Wakes the threads of rank r that sleep on its doorbells, whatever they wait for.
  void RingAll(uint32_t r) const;

 private:
  explicit JobPage(std::byte* base);
  std::byte* Block(uint32_t r) const {
    HVD_CHECK(r < ranks_, r, ranks_);
    return base_ + block_offset_ + r * block_stride_;
  }
  std::byte* base_ = nullptr;
  uint32_t ranks_ = 0;  // this and the following are copies, which no other process can overwrite
  size_t block_offset_ = 0, block_stride_ = 0, ring_offset_ = 0, ring_bytes_ = 0, trace_bytes_ = 0;
};

// Increments the word and wakes its sleepers, if any. Whatever the sleepers must see has to be
// stored before.
void Ring(Doorbell& bell);

// Sleeps until the bell rings, its word is no longer `expected`, or timeout_ns has passed. The
// caller must have read `expected`, then set `sleeping`, then checked again for what it waits for.
void SleepOn(Doorbell& bell, uint32_t expected, int64_t timeout_ns);

}  // namespace hvd

#endif  // HVD_RUNTIME_SEGMENT_JOB_PAGE_H_
