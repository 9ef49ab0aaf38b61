// The output of a detached job in files: segments of bounded size in one folder; the oldest are
// removed. A segment's name has the byte and line of the whole output at which it begins, so a late
// reader knows how many lines it missed. Output that could not be written is a gap between two
// segments, and is counted in the same way.
//
// One writer; any number of readers in other processes. Files are for their owner only.
#ifndef HVD_LAUNCHER_DETACHED_LOG_STORE_H_
#define HVD_LAUNCHER_DETACHED_LOG_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// A place in the whole output: bytes and line ends before it.
struct LogPlace {
  uint64_t offset = 0, line = 0;
  bool operator==(const LogPlace&) const = default;
};

struct LogSegment {
  LogPlace begin;
  std::string path;
};

// The existing segments, in order.
std::vector<LogSegment> SegmentsIn(const std::string& folder);

class LogWriter {
 public:
  // Continues the segments in `folder`, which exists. `limit_bytes`: of all segments together.
  static Result<std::unique_ptr<LogWriter>> Open(const std::string& folder, uint64_t limit_bytes);

  // `wall_ns` is when the bytes arrived (WallNanoseconds()).
  void Append(std::string_view bytes, int64_t wall_ns);
  LogPlace end() const { return end_; }

 private:
  LogWriter(std::string folder, uint64_t limit_bytes);
  bool Begin();
  bool OpenSegment(LogPlace begin);
  void Write(std::string_view bytes);
  void NoteTime(int64_t wall_ns);
  void RemoveOldest(uint64_t room, bool from_readers = false);

  const std::string folder_;
  const uint64_t limit_bytes_, segment_bytes_;
  UniqueFd segment_, times_;
  LogPlace begin_, end_;      // of the current segment
  bool line_ended_ = true;    // of all output
  int64_t last_time_ns_ = 0;  // of the last entry in times_
};

class LogReader {
 public:
  LogReader(std::string folder, LogPlace from) : folder_(std::move(folder)), place_(from) {}

  // Up to `most` more bytes; empty: none yet. Lines that the writer removed are counted for
  // PopLostLines().
  std::string Read(size_t most);
  LogPlace place() const { return place_; }
  // Lines lost since the last call; a partial line counts as one.
  uint64_t PopLostLines() { return std::exchange(lost_lines_, 0); }

 private:
  bool OpenNext();
  std::string ReadSegment(size_t most);

  const std::string folder_;
  LogPlace place_;
  LogPlace begin_;  // of the open segment
  UniqueFd segment_;
  uint64_t lost_lines_ = 0;
};

// Current size of the whole output in bytes.
uint64_t EndOfLog(const std::string& folder);

// The start of the first line that is no older than `wall_ns`, to a second; the end of the output
// if all of it is older. If the clock was set back, its later setting counts.
LogPlace PlaceSince(const std::string& folder, int64_t wall_ns);

// "hvdrun: 12 lines of older output are missing here ..."; without an end of line. Pure.
std::string LostLinesText(uint64_t lines);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_LOG_STORE_H_
