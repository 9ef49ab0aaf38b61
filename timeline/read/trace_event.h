// A raw event of a file in Chrome's trace format. Pure.
#ifndef HVD_TIMELINE_READ_TRACE_EVENT_H_
#define HVD_TIMELINE_READ_TRACE_EVENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "timeline/read/json_walk.h"

namespace hvd {

// All texts are raw views into `text`; empty: no such member. Valid until the next event is read.
struct TraceEvent {
  std::string_view text;  // the whole object
  char phase = 0;         // of "ph"; 0: none
  std::string_view name;  // with its quotes and escapes
  std::string_view ts, dur, pid, tid, id, cat, args;
};

// Parses the object at the walk. kBad also if it is not an object.
Walked ReadTraceEvent(JsonWalk* walk, TraceEvent* event);

// Of the event's "args", without quotes and escapes; empty: absent.
std::string NameIn(std::string_view args);

// "12.345", microseconds, as nanoseconds; nothing if the value is not a number or too large.
std::optional<int64_t> NanosecondsOf(std::string_view micros);
// The reverse, with three decimals.
void AppendMicros(std::string* out, int64_t ns);

}  // namespace hvd

#endif  // HVD_TIMELINE_READ_TRACE_EVENT_H_
