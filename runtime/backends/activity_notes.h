// ActivityNotes: what a backend did with the data of one operation, in order, for the timeline.
// Fixed memory: activities that do not fit are dropped. One thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_ACTIVITY_NOTES_H_
#define HVD_RUNTIME_BACKENDS_ACTIVITY_NOTES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/trace/activities.h"
#include "runtime/trace/ticks.h"

namespace hvd {

struct ActivityNote {
  uint64_t stamp = 0;  // start, in ticks of the notes' clock
  uint64_t bytes = 0;
  TraceActivity activity = TraceActivity::kNone;
  TraceAlgorithm algorithm = TraceAlgorithm::kUnknown;
  uint8_t collective = 0;  // hvd_collective between the hosts
  uint32_t tensors = 1;    // processed together
};

class ActivityNotes {
 public:
  static constexpr size_t kMost = 12;

  ActivityNotes() = default;
  explicit ActivityNotes(TraceClock clock) : clock_(clock) {}

  // Starts `note` now, without its stamp, and ends the previous one. An activity that continues
  // with more bytes stays one note.
  void Begin(ActivityNote note) {
    if (used_ > 0 && notes_[used_ - 1].activity == note.activity) {
      notes_[used_ - 1].bytes += note.bytes;
      return;
    }
    note.stamp = ReadTicks(clock_);
    Add(note);
  }
  void End() {
    if (used_ > 0) Begin({});
  }
  // For the newest activity and the rest of the operation.
  void SetAlgorithm(TraceAlgorithm algorithm) {
    algorithm_ = algorithm;
    if (used_ > 0) notes_[used_ - 1].algorithm = algorithm;
  }
  // Adds notes made elsewhere by the same clock, later than all of these.
  void Append(const ActivityNotes& later) {
    for (const ActivityNote& note : later.all()) Add(note);
    if (later.algorithm_ != TraceAlgorithm::kUnknown) algorithm_ = later.algorithm_;
  }
  // Forgets the activities but not the algorithm.
  void Clear() { used_ = 0; }

  std::span<const ActivityNote> all() const { return {notes_.data(), used_}; }
  TraceAlgorithm algorithm() const { return algorithm_; }
  TraceClock clock() const { return clock_; }

 private:
  void Add(const ActivityNote& note) {
    if (used_ < kMost) notes_[used_++] = note;
  }

  TraceClock clock_ = TraceClock::kSteadyNs;
  TraceAlgorithm algorithm_ = TraceAlgorithm::kUnknown;
  size_t used_ = 0;
  std::array<ActivityNote, kMost> notes_;
};

// An activity that lasts as long as this object. `notes` may be null: not recorded.
class NotedActivity {
 public:
  NotedActivity(ActivityNotes* notes, TraceActivity activity, uint64_t bytes) : notes_(notes) {
    if (notes_ != nullptr) [[unlikely]]
      notes_->Begin({.bytes = bytes, .activity = activity});
  }
  ~NotedActivity() {
    if (notes_ != nullptr) [[unlikely]]
      notes_->End();
  }
  NotedActivity(const NotedActivity&) = delete;

 private:
  ActivityNotes* const notes_;
};

inline void NoteAlgorithm(ActivityNotes* notes, TraceAlgorithm algorithm) {
  if (notes != nullptr) [[unlikely]]
    notes->SetAlgorithm(algorithm);
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_ACTIVITY_NOTES_H_
