// The trace ring: records that a recorder writes and a reader reads, in memory that both map.
// FORMAT.md describes it.
#ifndef HVD_RUNTIME_TRACE_RING_H_
#define HVD_RUNTIME_TRACE_RING_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/trace/activities.h"

namespace hvd {

// The kind of a record. The numbers are the format.
enum class TraceKind : uint8_t {
  kNone = 0,
  kName = 1,       // a piece of the text that an id stands for
  kSubmit = 2,     // this rank submitted the tensor
  kArrive = 3,     // the announcement of another rank of the host arrived
  kStart = 4,      // every rank of the host has announced it
  kDone = 5,       // the operation is over
  kWaitBegin = 6,  // a thread of the application begins to wait for it
  kWaitEnd = 7,
  kCycle = 8,      // a submission while nothing of this rank was in flight
  kStep = 9,       // an optimizer has made a step
  kCommit = 10,    // a commit of elastic state is over
  kStall = 11,     // a wait has lasted for the warning time of the stall check
  kLink = 12,      // how many bytes went to the leader of another host lately, and for how long
  kActivity = 13,  // from here on this is done with the data of the operation
  kTrial = 14,     // a trial of the tuner is over
};

// One event: 32 bytes, plain.
struct TraceRecord {
  uint64_t stamp = 0;  // ticks of the ring's clock
  TraceKind kind = TraceKind::kNone;
  uint8_t collective = 0;  // hvd_collective; of a name: bytes of text in this record
  // Of a name: which piece, kLastPiece added in the last one. Of kSubmit: number of the set. Of
  // kDone and kActivity: PartOf.
  uint16_t part = 0;
  uint32_t id = 0;  // of the name; 0: none
  // Of kStall: nanoseconds that it has waited; of kTrial: its score, in bytes per second.
  uint64_t bytes = 0;
  // Of kArrive: it announced the tensor; of kActivity: tensors that travel together; of kTrial:
  // steps; of others: members of the process set.
  uint32_t rank = 0;
  // Of kDone: hvd_status; of kSubmit: how often it was submitted before; of kLink: microseconds;
  // of kTrial: microseconds of a step.
  uint32_t status = 0;

  static constexpr uint16_t kLastPiece = 0x8000;
  static constexpr size_t kNameBytes = 24;  // of text in one record of a name
  static constexpr uint16_t PartOf(TraceActivity activity, TraceAlgorithm algorithm) {
    return static_cast<uint16_t>(unsigned{static_cast<uint8_t>(activity)} |
                                 unsigned{static_cast<uint8_t>(algorithm)} << 8U);
  }
  bool operator==(const TraceRecord&) const = default;
};
static_assert(sizeof(TraceRecord) == 32);

enum class TraceClock : uint32_t { kSteadyNs = 0, kTsc = 1 };

// The data that a reader asks the recorder for. Bits of TraceRingHeader::wanted.
enum TraceWanted : uint32_t {
  kTraceForLauncher = 1,  // every event: the launcher collects them
  kTraceForProcess = 2,   // every event: a process of the job collects them
  kTraceCycles = 4,       // kCycle, too
  kTraceCounts = 8,       // no events, but TraceCounts with waits and last arrivals
  kTraceForTuner = 16,    // every event: the tuner learns what an exchange costs
};
inline constexpr uint32_t kTraceAll = kTraceForLauncher | kTraceForProcess | kTraceForTuner;

// Counters of the rank's work since its ring began; written by the recorder only, read by any
// process. The last three do not change unless a reader requests kTraceCounts.
struct TraceCounts {
  std::atomic<uint64_t> operations;  // that are over, without an error
  std::atomic<uint64_t> bytes;       // of them
  std::atomic<uint64_t> steps;       // of an optimizer
  // Operations of which this rank was the last one of its host to submit.
  std::atomic<uint64_t> last;
  std::atomic<uint64_t> waited;   // ticks in which a thread of the application waited
  std::atomic<uint64_t> waiting;  // since this stamp one does; 0: none
};

// Before the records, one page.
struct TraceRingHeader {
  std::atomic<uint32_t> clock;  // TraceClock; written by the recorder before its first record
  // How many records were written; the next goes to index `written` modulo the capacity.
  alignas(64) std::atomic<uint64_t> written;
  TraceCounts counts;                        // in the same cache line
  alignas(64) std::atomic<uint32_t> wanted;  // TraceWanted; written by those who read
};

using TraceSlot = std::array<std::atomic<uint64_t>, 4>;
static_assert(sizeof(TraceSlot) == sizeof(TraceRecord));

inline constexpr size_t kTraceHeaderBytes = 4096;
static_assert(sizeof(TraceRingHeader) <= kTraceHeaderBytes);

// The memory of one ring: zeroed, page-aligned, a header and a power of two of records.
struct TraceRing {
  TraceRingHeader* header = nullptr;
  TraceSlot* slots = nullptr;
  uint64_t capacity = 0;

  static constexpr size_t BytesFor(uint64_t records) {
    return kTraceHeaderBytes + records * sizeof(TraceRecord);
  }
  // Capacity 0 where the memory is too small or its size is none of BytesFor of a power of two.
  static TraceRing In(std::span<std::byte> memory);
};

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_RING_H_
