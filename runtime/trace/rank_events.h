// RankEvents: converts the records of one rank's ring to named events. Pure; accepts any records,
// including damaged ones and gaps.
#ifndef HVD_RUNTIME_TRACE_RANK_EVENTS_H_
#define HVD_RUNTIME_TRACE_RANK_EVENTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/trace/ring.h"
#include "runtime/trace/timeline_event.h"

namespace hvd {

class RankEvents {
 public:
  explicit RankEvents(uint32_t rank) : rank_(rank) {}

  // The stamps of `records` are in nanoseconds; `lost`: number of records missing before them.
  void Add(std::span<const TraceRecord> records, uint64_t lost, const TimelineSink& sink);
  // The rank has ended or begins another generation: ends open events at the last stamp.
  void Close(const TimelineSink& sink);
  // Ends open events and continues.
  void EndAll(const TimelineSink& sink);

  uint64_t lost() const { return lost_; }  // total

 private:
  enum class State : uint8_t { kIdle, kNegotiating, kRunning };
  struct Name {
    std::string row;  // of its events: the text, or "tensor 9" without one
    std::string text, dtype, shape;
    std::string pieces;  // of an incomplete text
    uint16_t next_piece = 0;
    State state = State::kIdle;
    bool top_level = false;       // an event of its operation is open
    bool active = false;          // one of an activity, the innermost
    int64_t row_ns = 0;           // of the newest event of its row
    uint32_t waits = 0;           // open
    std::vector<uint32_t> early;  // ranks that announced the next round before the end of this one
  };

  void Learn(const TraceRecord& piece);
  Name& Find(uint32_t id);
  void Record(const TraceRecord& record, const TimelineSink& sink);
  void Activity(Name& name, const TraceRecord& record, const TimelineSink& sink);
  void EndActivity(Name& name, int64_t ns, const TimelineSink& sink);
  void Announced(Name& name, uint32_t rank, const std::string& what, const TimelineSink& sink);
  void Done(Name& name, const TraceRecord& record, const TimelineSink& sink);
  void EmitEnd(Name& name, const TraceRecord& record, const TimelineSink& sink);
  void EndOpen(Name& name, const TimelineSink& sink);
  // On the row of the rank itself.
  void Emit(const TimelineSink& sink, TimelineEvent::Phase phase, std::string what,
            std::string args = {}) const;
  void EmitOn(Name& name, const TimelineSink& sink, TimelineEvent::Phase phase, std::string what,
              std::string args = {}) const;

  const uint32_t rank_;
  std::unordered_map<uint32_t, Name> names_;
  uint64_t lost_ = 0;
  int64_t now_ = 0;  // of the last record
};

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_RANK_EVENTS_H_
