// RingReader: reads a trace ring while its recorder writes, also one whose writer died in the
// middle. Counts records that were overwritten before being read.
//
// One thread at a time; any number of readers of one ring. The memory outlives it and is untrusted,
// since it may be damaged.
#ifndef HVD_RUNTIME_TRACE_RING_READER_H_
#define HVD_RUNTIME_TRACE_RING_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/trace/ring.h"

namespace hvd {

// TraceCounts as plain values.
struct RankCounts {
  uint64_t operations = 0, bytes = 0, steps = 0, last = 0;
  uint64_t waited = 0;  // ticks
  bool waiting = false;
};

class RingReader {
 public:
  // Begins with the oldest remaining record.
  explicit RingReader(std::span<std::byte> memory) : ring_(TraceRing::In(memory)) {}

  // Appends at most `most` of the records that are new since the last call; returns how many were
  // overwritten before them. A ring whose count went backwards (damage) is read from there.
  uint64_t Read(std::vector<TraceRecord>* records, size_t most);

  // Skips the existing records.
  void SkipToNow();
  // The ring has unread records.
  bool HasMore() const;
  TraceClock clock() const;
  // The counts of the rank's work so far, as it tells them. `now`: a stamp of its clock; a wait
  // that has not ended counts up to there.
  RankCounts Counts(uint64_t now) const;
  // Asks the recorder for these events, or for none of them any more (TraceWanted).
  void Want(uint32_t bits) const;
  void WantNoMore(uint32_t bits) const;

 private:
  TraceRing ring_;
  uint64_t next_ = 0;  // the first record that was not read
};

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_RING_READER_H_
