// Chrome's trace format: single events as JSON, one line each. Pure.
#ifndef HVD_RUNTIME_TRACE_CHROME_TEXT_H_
#define HVD_RUNTIME_TRACE_CHROME_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/trace/timeline_event.h"

namespace hvd {

// The text as a JSON string with its quotes: valid UTF-8 JSON for any bytes. Text is truncated to
// `most` bytes, never inside a character.
std::string JsonText(std::string_view text, size_t most = 1024);

// `tid`: the row. ns counts from the start of the file; a time before that is negative.
std::string EventLine(const TimelineEvent& event, uint32_t tid);

// {"ph":"M",...}: `args` are members of a JSON object.
std::string MetadataLine(std::string_view name, uint32_t pid, uint32_t tid, std::string_view args);

}  // namespace hvd

#endif  // HVD_RUNTIME_TRACE_CHROME_TEXT_H_
