// TraceFollower: the events of a timeline that is still being written.
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

  // Hands over what was written since the last call. Not ok: the file cannot be read, or is no list
  // of events. An event of which a part is not written yet comes with a later call.
  Status Poll(const std::function<void(const TraceEvent&)>& on_event);
  // The writer has written its last event.
  bool closed() const { return closed_; }

 private:
  Status Open();
  size_t Take(const std::function<void(const TraceEvent&)>& on_event);

  const std::string path_;
  UniqueFd fd_;
  uint64_t offset_ = 0;  // behind the last event that was handed over
  std::vector<char> buffer_;
  size_t used_ = 0;
  bool closed_ = false;
};

}  // namespace hvd

#endif  // HVD_TIMELINE_READ_TRACE_FOLLOWER_H_
