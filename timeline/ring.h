// The trace ring: what a recorder writes and a reader reads, in memory that both map. FORMAT.md
// describes it.
#ifndef HVD_TIMELINE_RING_H_
#define HVD_TIMELINE_RING_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

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
  kCycle = 8,  // a submission while nothing of this rank was in flight
};

// One event: 32 bytes, plain.
struct TraceRecord {
  uint64_t stamp = 0;  // ticks of the ring's clock
  TraceKind kind = TraceKind::kNone;
  uint8_t collective = 0;  // hvd_collective; of a name: bytes of text in this record
  uint16_t part = 0;       // of a name: which piece, kLastPiece added in the last one
  uint32_t id = 0;         // of the name; 0: none
  uint64_t bytes = 0;
  uint32_t rank = 0;  // of kArrive: it announced the tensor; of others: members of the process set
  uint32_t status = 0;  // of kDone: hvd_status; of kSubmit: how often it was submitted before

  static constexpr uint16_t kLastPiece = 0x8000;
  static constexpr size_t kNameBytes = 24;  // of text in one record of a name
  bool operator==(const TraceRecord&) const = default;
};
static_assert(sizeof(TraceRecord) == 32);

enum class TraceClock : uint32_t { kSteadyNs = 0, kTsc = 1 };

// What somebody who reads asks the recorder for. Bits of TraceRingHeader::wanted.
enum TraceWanted : uint32_t {
  kTraceForLauncher = 1,  // every event: the launcher collects them
  kTraceForProcess = 2,   // every event: a process of the job collects them
  kTraceCycles = 4,       // kCycle, too
};
inline constexpr uint32_t kTraceAll = kTraceForLauncher | kTraceForProcess;

// Before the records, one page.
struct TraceRingHeader {
  std::atomic<uint32_t> clock;  // TraceClock; written by the recorder before its first record
  // How many records were written; the next goes to index `written` modulo the capacity.
  alignas(64) std::atomic<uint64_t> written;
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

#endif  // HVD_TIMELINE_RING_H_
