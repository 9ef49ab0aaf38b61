#include "runtime/trace/step_counter.h"

#include <algorithm>

namespace hvd {
namespace {

// Names that a script makes up in each step never recur.
constexpr size_t kMostTrackedNames = 65536;

}  // namespace

void StepCounter::Add(const TraceRecord& record) {
  if (record.kind == TraceKind::kStep) ++marks_;
  if (record.kind != TraceKind::kDone || record.status != 0 || record.id == 0) return;
  if (uses_.size() >= kMostTrackedNames) uses_.clear();
  NameUse& name = uses_[record.id];
  ++name.times;
  name.bytes = record.bytes;
  if (name.times < 2 || name.bytes < largest_bytes_) return;
  largest_bytes_ = name.bytes;
  rounds_ = std::max(rounds_, name.times);
}

void StepCounter::BeginRing() {
  before_ = steps();
  marks_ = rounds_ = largest_bytes_ = 0;
  uses_.clear();
}

}  // namespace hvd
