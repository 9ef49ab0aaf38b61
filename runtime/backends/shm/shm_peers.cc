#include "runtime/backends/shm/shm_peers.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/align.h"
#include "runtime/base/check.h"

namespace hvd {
namespace {

constexpr int64_t kLongestSleepNs = 100'000'000;

}  // namespace

ShmPeers::ShmPeers(JobPage page, uint32_t rank)
    : page_(page),
      rank_(rank),
      ring_bytes_(page.header().ring_bytes),
      salt_(page.header().generation << 40),
      heads_(page.local_size(), 0) {
  HVD_CHECK(ring_bytes_ != 0 && (ring_bytes_ & (ring_bytes_ - 1)) == 0, ring_bytes_);
}

ShmPeers::Frame& ShmPeers::FrameAt(uint32_t owner, uint64_t position) const {
  return *reinterpret_cast<Frame*>(page_.ring(owner).data() + (position & (ring_bytes_ - 1)));
}

uint64_t ShmPeers::SlowestReader() const {
  uint64_t slowest = tail_;
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank_ || HasLeft(r)) continue;
    const uint64_t consumed = page_.rank(r).consumed[rank_].load(std::memory_order_acquire);
    HVD_CHECK(consumed <= tail_ && tail_ - consumed <= ring_bytes_, r, consumed, tail_);
    slowest = std::min(slowest, consumed);
  }
  return slowest;
}

bool ShmPeers::HasRoom(uint64_t bytes) {
  if (tail_ + bytes - slowest_ <= ring_bytes_) return true;
  slowest_ = SlowestReader();
  return tail_ + bytes - slowest_ <= ring_bytes_;
}

// A word that no data of an earlier round of the ring contains by chance, so that a frame can be
// told from stale bytes, which need not be cleared. The mixing is that of splitmix64 (Steele, Lea,
// Flood, OOPSLA 2014).
uint64_t ShmPeers::Stamp(uint64_t position) const {
  uint64_t z = (position ^ salt_) + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return (z ^ (z >> 31)) | 1;
}

std::span<std::byte> ShmPeers::Reserve(size_t bytes) {
  HVD_CHECK(bytes <= max_record(), bytes, max_record());
  const uint64_t length = RoundUp(sizeof(Frame) + bytes, kCacheLine);
  const uint64_t to_end = ring_bytes_ - (tail_ & (ring_bytes_ - 1));
  if (length > to_end) {
    // The record does not fit before the end: continue at the start.
    if (!HasRoom(to_end + length)) return {};
    Publish(tail_, kSkip);
    tail_ += to_end;
  } else if (!HasRoom(length)) {
    return {};
  }
  reserved_bytes_ = static_cast<uint32_t>(bytes);
  auto* frame = reinterpret_cast<std::byte*>(&FrameAt(rank_, tail_));
  return {frame + sizeof(Frame), bytes};
}

void ShmPeers::Commit() {
  Publish(tail_, reserved_bytes_);
  tail_ += RoundUp(sizeof(Frame) + reserved_bytes_, kCacheLine);
  WakeAll();
}

void ShmPeers::Publish(uint64_t position, uint32_t record_bytes) {
  Frame& frame = FrameAt(rank_, position);
  frame.bytes = record_bytes;
  frame.commit.store(Stamp(position), std::memory_order_release);
}

// Keeps a misbehaving peer from leading this rank out of the peer's ring.
void ShmPeers::CheckInRing(uint64_t position, uint32_t record_bytes) const {
  const uint64_t at = position & (ring_bytes_ - 1);
  HVD_CHECK(at + sizeof(Frame) + record_bytes <= ring_bytes_, at, record_bytes, ring_bytes_);
}

std::span<const std::byte> ShmPeers::Peek(uint32_t peer) {
  for (;;) {
    uint64_t& head = heads_[peer];
    const Frame& frame = FrameAt(peer, head);
    if (frame.commit.load(std::memory_order_acquire) != Stamp(head)) return {};
    if (frame.bytes != kSkip) {
      CheckInRing(head, frame.bytes);
      return {reinterpret_cast<const std::byte*>(&frame + 1), frame.bytes};
    }
    head += ring_bytes_ - (head & (ring_bytes_ - 1));
    page_.rank(rank_).consumed[peer].store(head, std::memory_order_release);
  }
}

void ShmPeers::Consume(uint32_t peer) {
  uint64_t& head = heads_[peer];
  const uint32_t bytes = FrameAt(peer, head).bytes;
  CheckInRing(head, bytes);
  head += RoundUp(sizeof(Frame) + bytes, kCacheLine);
  page_.rank(rank_).consumed[peer].store(head, std::memory_order_release);
}

bool ShmPeers::HasLeft(uint32_t peer) const {
  auto left = static_cast<uint32_t>(RankState::kLeft);
  return page_.rank(peer).state.load(std::memory_order_acquire) == left;
}

void ShmPeers::WakeAll() {
  for (uint32_t r = 0; r < size(); ++r) {
    if (r != rank_) Ring(page_.rank(r).bell);
  }
}

void ShmPeers::Nudge() {
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank_) continue;
    Ring(page_.rank(r).bell);
    Ring(page_.rank(r).runtime_bell);
  }
}

void ShmPeers::NoteFailed() { page_.rank(rank_).last.failed.store(1, std::memory_order_release); }

// The sequence is odd while the record changes, so that a reader can tell a half-written name.
void ShmPeers::NoteSubmitted(uint32_t collective, std::string_view name) {
  LastCollective& last = page_.rank(rank_).last;
  const uint64_t sequence = last.sequence.load(std::memory_order_relaxed);
  last.sequence.store(sequence + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  last.collective.store(collective, std::memory_order_relaxed);
  const size_t length = std::min(name.size(), sizeof last.name - 1);
  std::memcpy(last.name, name.data(), length);
  last.name[length] = '\0';
  last.sequence.store(sequence + 2, std::memory_order_release);
}

void ShmPeers::NoteSleeping(int64_t since_ns) {
  LastCollective& last = page_.rank(rank_).last;
  last.started_ns.store(static_cast<uint64_t>(since_ns), std::memory_order_relaxed);
  last.waiting.store(since_ns != 0 ? 1 : 0, std::memory_order_release);
}

void ShmPeers::WakeSelf() { Ring(page_.rank(rank_).bell); }

uint32_t ShmPeers::AnnounceSleep() {
  Doorbell& bell = page_.rank(rank_).bell;
  uint32_t word = bell.word.load(std::memory_order_acquire);
  bell.sleeping.fetch_add(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in Ring
  return word;
}

void ShmPeers::Sleep(uint32_t token, int64_t timeout_ns) {
  SleepOn(page_.rank(rank_).bell, token, std::min(timeout_ns, kLongestSleepNs));
}

void ShmPeers::EndSleep() {
  page_.rank(rank_).bell.sleeping.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace hvd
