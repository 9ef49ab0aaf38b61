// TraceFollower: reads the events of a timeline while it is being written.
//
// One thread at a time.
#ifndef HVD_TIMELINE_READ_TRACE_FOLLOWER_H_
#define HVD_TIMELINE_READ_TRACE_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "timeline/read/trace_event.h"

namespace hvd {

class TraceFollower {
 public:
  explicit TraceFollower(std::string path) : path_(std::move(path)) {}

  // Delivers the events written since the last call; a partially written one is left for a later
  // call. Not ok: the file cannot be read, or is not a list of events.
  Status Poll(const std::function<void(const TraceEvent&)>& on_event);
  // The writer has written its last event.
  bool closed() const { return closed_; }

 private:
  Status Open();
  size_t ReadEvents(const std::function<void(const TraceEvent&)>& on_event);

  const std::string path_;
  UniqueFd fd_;
  uint64_t offset_ = 0;  // after the last delivered event
  std::vector<char> buffer_;
  size_t used_ = 0;
  bool closed_ = false;
};

}  // namespace hvd

#endif  // HVD_TIMELINE_READ_TRACE_FOLLOWER_H_
