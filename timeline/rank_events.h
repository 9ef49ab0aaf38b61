// RankEvents: the records of one rank's ring as events with names. Pure; any records are taken,
// also damaged ones and those between which some were lost.
#ifndef HVD_TIMELINE_RANK_EVENTS_H_
#define HVD_TIMELINE_RANK_EVENTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "timeline/ring.h"
#include "timeline/timeline_event.h"

namespace hvd {

class RankEvents {
 public:
  explicit RankEvents(uint32_t rank) : rank_(rank) {}

  // The stamps of `records` are nanoseconds already; `lost`: so many are missing before them.
  void Take(std::span<const TraceRecord> records, uint64_t lost, const TimelineSink& sink);
  // The rank is gone or begins another generation: ends what is open, at the last stamp.
  void Close(const TimelineSink& sink);

  uint64_t lost() const { return lost_; }  // in all

 private:
  enum class State : uint8_t { kIdle, kNegotiating, kRunning };
  struct Name {
    std::string text, dtype, shape;
    std::string pieces;  // of a text that is not complete
    uint16_t next_piece = 0;
    State state = State::kIdle;
    bool top_level = false;  // an event of its operation is open
    uint32_t waits = 0;      // open
  };

  void Learn(const TraceRecord& piece);
  Name& Find(uint32_t id);
  void Record(const TraceRecord& record, const TimelineSink& sink);
  void Done(Name& name, const TraceRecord& record, const TimelineSink& sink);
  void EndOpen(Name& name, const TimelineSink& sink);
  void Emit(const TimelineSink& sink, TimelineEvent::Phase phase, const Name* name,
            std::string what, std::string args = {}) const;

  const uint32_t rank_;
  std::unordered_map<uint32_t, Name> names_;
  uint64_t lost_ = 0;
  int64_t now_ = 0;  // of the last record
};

}  // namespace hvd

#endif  // HVD_TIMELINE_RANK_EVENTS_H_
