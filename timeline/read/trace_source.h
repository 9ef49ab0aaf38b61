// TraceSource: the events of one trace file, one after the other, with the memory of one block: a
// timeline of hvdrun, an array of events as Chrome reads it, or an object with "traceEvents" as the
// profiler of PyTorch (Kineto) writes it.
//
// One thread at a time.
#ifndef HVD_TIMELINE_READ_TRACE_SOURCE_H_
#define HVD_TIMELINE_READ_TRACE_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "timeline/read/trace_event.h"

namespace hvd {

// Which file an event came from.
struct TraceOrigin {
  std::string path;
  bool timeline = false;  // of hvdrun: it begins with the moment of its zero
  bool object = false;    // {"traceEvents": [...]}
  int64_t rank = -1;      // of a profiler's trace that says it; -1: it does not
  // Of the moment that events count from, in nanoseconds since 1970; nothing: nobody knows.
  std::optional<int64_t> zero_ns;
};

class TraceSource {
 public:
  // A sentence about the file where it cannot be read or is no trace. Regular files only.
  static Result<std::unique_ptr<TraceSource>> Open(const std::string& path);
  // The same of a text, which is called `name`.
  static Result<std::unique_ptr<TraceSource>> OfText(const std::string& name, std::string text);

  // The next event; nullptr: there is none, or status() says why it cannot be read. The event is
  // valid until the next call.
  const TraceEvent* Next();
  // From now on Next returns only events of this process: in a timeline, of this rank.
  void KeepProcess(const std::string& pid) { kept_pid_ = pid; }
  const Status& status() const { return status_; }
  const TraceOrigin& origin() const { return origin_; }
  uint64_t events() const { return events_; }  // so far
  uint64_t size() const { return size_; }      // of the file, in bytes

  static constexpr size_t kBlock = size_t{1} << 20U;
  static constexpr size_t kLongestEvent = size_t{64} << 20U;

 private:
  // Bytes from `offset` on; how many, 0 at the end, below 0 with errno.
  using ReadAt = std::function<int64_t(char* to, size_t most, uint64_t offset)>;
  enum class Place : uint8_t { kFirst, kBetween, kBehind, kOver };

  TraceSource(std::string path, uint64_t size, ReadAt read_at);
  static Result<std::unique_ptr<TraceSource>> Begin(std::unique_ptr<TraceSource> source);
  Status ReadHead();
  Walked ReadHeadMembers(JsonWalk* walk);
  void FindBaseTime();
  void FindZero();
  const TraceEvent* NextOfAny();
  bool Refill();
  bool EnsureText();
  bool BeforeEvent();
  bool BeforeEventOrComma();
  bool ReadRest();
  const TraceEvent* Fail(const std::string& what);
  JsonWalk Walk() const { return JsonWalk({buffer_.data() + at_, used_ - at_}); }
  void StandAt(const JsonWalk& walk) { at_ = static_cast<size_t>(walk.at() - buffer_.data()); }

  TraceOrigin origin_;
  const uint64_t size_;
  const ReadAt read_at_;
  std::vector<char> buffer_;
  size_t at_ = 0, used_ = 0;  // in the buffer
  uint64_t offset_ = 0;       // of what will be read next
  bool at_end_ = false;
  Place place_ = Place::kFirst;
  TraceEvent event_;
  std::string kept_pid_;  // empty: all
  bool peeked_ = false;   // event_ was read already and not handed out
  uint64_t events_ = 0;
  Status status_;
};

}  // namespace hvd

#endif  // HVD_TIMELINE_READ_TRACE_SOURCE_H_
