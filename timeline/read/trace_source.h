// TraceSource: reads the events of a trace file sequentially in blocks: a timeline of hvdrun, an
// array of events as Chrome reads it, or an object with "traceEvents" as written by PyTorch's
// profiler (Kineto).
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

// The file of an event.
struct TraceOrigin {
  std::string path;
  bool timeline = false;  // of hvdrun, which begins with its time zero
  bool object = false;    // {"traceEvents": [...]}
  int64_t rank = -1;      // from a profiler's trace; -1: unknown
  // Time zero of the events, in nanoseconds since 1970; nothing: unknown.
  std::optional<int64_t> zero_ns;
};

class TraceSource {
 public:
  // The error is a sentence if the file cannot be read or is not a trace. Regular files only.
  static Result<std::unique_ptr<TraceSource>> Open(const std::string& path);
  // The same for a text in memory; `name` is for messages.
  static Result<std::unique_ptr<TraceSource>> OfText(const std::string& name, std::string text);

  // The next event; nullptr at the end, or on an error in status(). Valid until the next call.
  const TraceEvent* Next();
  // Restricts Next to events of this process: in a timeline, of this rank.
  void KeepProcess(const std::string& pid) { kept_pid_ = pid; }
  const Status& status() const { return status_; }
  const TraceOrigin& origin() const { return origin_; }
  uint64_t events() const { return events_; }  // so far
  uint64_t size() const { return size_; }      // of the file, in bytes

  static constexpr size_t kBlock = size_t{1} << 20U;
  static constexpr size_t kLongestEvent = size_t{64} << 20U;

 private:
  // Reads from `offset`; returns the number of bytes, 0 at the end, negative with errno on errors.
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
  uint64_t offset_ = 0;       // of the next read
  bool at_end_ = false;
  Place place_ = Place::kFirst;
  TraceEvent event_;
  std::string kept_pid_;  // empty: all
  bool peeked_ = false;   // event_ was read but not returned
  uint64_t events_ = 0;
  Status status_;
};

}  // namespace hvd

#endif  // HVD_TIMELINE_READ_TRACE_SOURCE_H_
