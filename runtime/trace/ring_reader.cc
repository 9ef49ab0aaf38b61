#include "runtime/trace/ring_reader.h"

#include <algorithm>
#include <bit>

namespace hvd {
namespace {

TraceRecord Load(const TraceSlot& slot) {
  std::array<uint64_t, 4> words;
  for (size_t i = 0; i < words.size(); ++i) words[i] = slot[i].load(std::memory_order_relaxed);
  return std::bit_cast<TraceRecord>(words);
}

}  // namespace

uint64_t RingReader::Read(std::vector<TraceRecord>* records, size_t most) {
  if (ring_.capacity == 0) return 0;
  const uint64_t written = ring_.header->written.load(std::memory_order_acquire);
  if (written < next_) next_ = written;
  const uint64_t oldest = written - std::min(written, ring_.capacity);
  const uint64_t first = std::max(next_, oldest);
  const uint64_t end = first + std::min<uint64_t>(written - first, most);
  const size_t before = records->size();
  for (uint64_t at = first; at < end; ++at)
    records->push_back(Load(ring_.slots[at & (ring_.capacity - 1)]));
  // The records that the recorder wrote meanwhile, and the one that it may be writing now, have
  // overwritten the oldest ones.
  std::atomic_thread_fence(std::memory_order_acquire);
  const uint64_t now = ring_.header->written.load(std::memory_order_relaxed);
  const uint64_t sound = now >= ring_.capacity ? now - ring_.capacity + 1 : 0;
  const uint64_t torn = std::clamp(sound, first, end) - first;
  records->erase(records->begin() + static_cast<ptrdiff_t>(before),
                 records->begin() + static_cast<ptrdiff_t>(before + torn));
  const uint64_t lost = first + torn - next_;
  next_ = end;
  return lost;
}

void RingReader::SkipToNow() {
  if (ring_.capacity != 0) next_ = ring_.header->written.load(std::memory_order_acquire);
}

bool RingReader::HasMore() const {
  return ring_.capacity != 0 && ring_.header->written.load(std::memory_order_acquire) != next_;
}

TraceClock RingReader::clock() const {
  if (ring_.capacity == 0) return TraceClock::kSteadyNs;
  return ring_.header->clock.load(std::memory_order_acquire) ==
                 static_cast<uint32_t>(TraceClock::kTsc)
             ? TraceClock::kTsc
             : TraceClock::kSteadyNs;
}

RankCounts RingReader::Counts(uint64_t now) const {
  if (ring_.capacity == 0) return {};
  const TraceCounts& counts = ring_.header->counts;
  const auto read = [](const std::atomic<uint64_t>& count) {
    return count.load(std::memory_order_relaxed);
  };
  const uint64_t since = read(counts.waiting);
  RankCounts seen{read(counts.operations), read(counts.bytes),  read(counts.steps),
                  read(counts.last),       read(counts.waited), since != 0};
  if (since != 0 && since < now) seen.waited += now - since;
  return seen;
}

void RingReader::Want(uint32_t bits) const {
  if (ring_.capacity != 0) ring_.header->wanted.fetch_or(bits, std::memory_order_relaxed);
}

void RingReader::WantNoMore(uint32_t bits) const {
  if (ring_.capacity != 0) ring_.header->wanted.fetch_and(~bits, std::memory_order_relaxed);
}

}  // namespace hvd
