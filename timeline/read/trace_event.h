// One event of a file in Chrome's trace format, as it is written there. Pure.
#ifndef HVD_TIMELINE_READ_TRACE_EVENT_H_
#define HVD_TIMELINE_READ_TRACE_EVENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "timeline/read/json_walk.h"

namespace hvd {

// Every text is a part of `text`, as it is written; empty: the event has no such member. They are
// valid until the next event is read.
struct TraceEvent {
  std::string_view text;  // the whole object
  char phase = 0;         // of "ph"; 0: none
  std::string_view name;  // with its quotes and escapes
  std::string_view ts, dur, pid, tid, id, cat, args;
};

// The object that begins at the walk. kBad also where it is none.
Walked ReadTraceEvent(JsonWalk* walk, TraceEvent* event);

// Of the event's "args", without quotes and escapes; empty: they have none.
std::string NameIn(std::string_view args);

// "12.345", microseconds, as nanoseconds; nothing where the value is no number or too large.
std::optional<int64_t> NanosecondsOf(std::string_view micros);
// The reverse, with three decimals.
void AppendMicros(std::string* out, int64_t ns);

}  // namespace hvd

#endif  // HVD_TIMELINE_READ_TRACE_EVENT_H_
