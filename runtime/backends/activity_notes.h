// ActivityNotes: the activities of a backend with the data of one operation, one after the other,
// for the timeline. Fixed memory: an activity that does not fit is not noted. One thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_ACTIVITY_NOTES_H_
#define HVD_RUNTIME_BACKENDS_ACTIVITY_NOTES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "timeline/activities.h"
#include "timeline/ticks.h"

namespace hvd {

struct ActivityNote {
  uint64_t stamp = 0;  // ticks of the notes' clock, at which it began
  uint64_t bytes = 0;
  TraceActivity activity = TraceActivity::kNone;
  TraceAlgorithm algorithm = TraceAlgorithm::kUnsaid;
  uint8_t collective = 0;  // hvd_collective that the hosts carry out
  uint32_t tensors = 1;    // that this is done with at once
};

class ActivityNotes {
 public:
  static constexpr size_t kMost = 12;

  ActivityNotes() = default;
  explicit ActivityNotes(TraceClock clock) : clock_(clock) {}

  // `note` without its stamp begins now, and the one before it ends. An activity that goes on with
  // more bytes is one note.
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
  // Of the newest activity, and of the operation from now on.
  void SetAlgorithm(TraceAlgorithm algorithm) {
    algorithm_ = algorithm;
    if (used_ > 0) notes_[used_ - 1].algorithm = algorithm;
  }
  // Adds notes that were made elsewhere, by the same clock and later than all of these.
  void Append(const ActivityNotes& later) {
    for (const ActivityNote& note : later.all()) Add(note);
    if (later.algorithm_ != TraceAlgorithm::kUnsaid) algorithm_ = later.algorithm_;
  }
  // Forgets the activities, but not the way.
  void Clear() { used_ = 0; }

  std::span<const ActivityNote> all() const { return {notes_.data(), used_}; }
  TraceAlgorithm algorithm() const { return algorithm_; }
  TraceClock clock() const { return clock_; }

 private:
  void Add(const ActivityNote& note) {
    if (used_ < kMost) notes_[used_++] = note;
  }

  TraceClock clock_ = TraceClock::kSteadyNs;
  TraceAlgorithm algorithm_ = TraceAlgorithm::kUnsaid;
  size_t used_ = 0;
  std::array<ActivityNote, kMost> notes_;
};

// An activity as long as this lives. `notes` may be null: nobody wants to know.
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
