// Recorder: writes events into a trace ring. Always on: without a reader, the ring keeps the last
// few thousand events. Never blocks or fails; allocates only for new names.
//
// One writer per ring: one thread at a time. Owns nothing; the memory outlives it.
#ifndef HVD_RUNTIME_TRACE_RECORDER_H_
#define HVD_RUNTIME_TRACE_RECORDER_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "runtime/trace/ring.h"
#include "runtime/trace/ticks.h"

namespace hvd {

// The id of a name in one ring, and the last position of its text there. Stored with the name.
struct TraceName {
  uint32_t id = 0;          // 0: none yet
  uint64_t written_at = 0;  // position of the text in the ring

  // The text has changed.
  void Change() { written_at = uint64_t{1} << 63; }
};

// The records with the text of an id, in order. The text is truncated to kMostNameBytes.
inline constexpr size_t kMostNameBytes = 1008;
void ForEachNameRecord(uint32_t id, std::string_view text,
                       const std::function<void(const TraceRecord&)>& write);

class Recorder {
 public:
  // Records nothing.
  Recorder() = default;
  // `memory`: see TraceRing. Continues where an earlier recorder of the ring stopped.
  explicit Recorder(std::span<std::byte> memory, TraceClock clock = BestTraceClock());

  bool on() const { return ring_.capacity != 0; }
  // The TraceWanted bits: events requested beyond one per operation.
  uint32_t wanted() const {
    return on() ? ring_.header->wanted.load(std::memory_order_relaxed) : 0;
  }
  bool wants_all() const { return (wanted() & kTraceAll) != 0; }
  // Waits are to be recorded by Waiting, last arrivals by CountLast.
  bool wants_waits() const { return (wanted() & (kTraceAll | kTraceCounts)) != 0; }

  uint64_t Now() const { return ReadTicks(clock_); }
  TraceClock clock() const { return clock_; }

  // The newest half of the ring has the text of this name, so that a reader can show events of the
  // id. If false, write the text again.
  bool HasName(const TraceName& name) const {
    return name.id != 0 && next_ - name.written_at <= ring_.capacity / 2;
  }
  // Writes the text, truncated to kMostNameBytes; assigns an id if the name has none.
  void WriteName(TraceName* name, std::string_view text);

  // Only while on().
  void Write(const TraceRecord& record) {
    TraceSlot& slot = ring_.slots[next_ & (ring_.capacity - 1)];
    // By shifts: loading a word right after storing its parts causes a store-forwarding stall.
    const uint64_t head = static_cast<uint64_t>(record.kind) | uint64_t{record.collective} << 8 |
                          uint64_t{record.part} << 16 | uint64_t{record.id} << 32;
    const uint64_t tail = record.rank | uint64_t{record.status} << 32;
    // A reader that sees one of these words also sees that the place was taken.
    std::atomic_thread_fence(std::memory_order_release);
    slot[0].store(record.stamp, std::memory_order_relaxed);
    slot[1].store(head, std::memory_order_relaxed);
    slot[2].store(record.bytes, std::memory_order_relaxed);
    slot[3].store(tail, std::memory_order_relaxed);
    ring_.header->written.store(++next_, std::memory_order_release);
  }

  // For TraceCounts. Only while on().
  void CountOperation(uint64_t bytes) {
    Add(&ring_.header->counts.operations, 1);
    Add(&ring_.header->counts.bytes, bytes);
  }
  void CountLast() { Add(&ring_.header->counts.last, 1); }
  void CountStep() { Add(&ring_.header->counts.steps, 1); }
  // A thread of the application begins to wait, or ends it.
  void BeginWait() {
    if (waits_++ == 0) ring_.header->counts.waiting.store(Now(), std::memory_order_relaxed);
  }
  void EndWait() {
    if (--waits_ > 0) return;
    TraceCounts& counts = ring_.header->counts;
    const uint64_t since = counts.waiting.load(std::memory_order_relaxed);
    counts.waiting.store(0, std::memory_order_relaxed);
    Add(&counts.waited, Now() - since);
  }

 private:
  // There is one writer.
  static void Add(std::atomic<uint64_t>* count, uint64_t more) {
    count->store(count->load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  TraceRing ring_;
  TraceClock clock_ = TraceClock::kSteadyNs;
  uint64_t next_ = 0;
  uint32_t last_id_ = 0;
  uint32_t waits_ = 0;  // open
};

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_RECORDER_H_
