#include "launcher/tuning/step_meter.h"

#include <algorithm>
#include <utility>

#include "runtime/base/quantile.h"

namespace hvd {
namespace {

// How often a name must occur before it is chosen; one with many bytes may come later, or occur
// only once at the beginning.
constexpr size_t kOften = 3, kOftenEnough = 20;
constexpr size_t kMostNames = 100'000;

// The finaliser of SplitMix64: every bit of the result depends on every bit of the number.
uint64_t Mixed(uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

uint64_t DigestOf(const TraceRecord& record) {
  return Mixed(Mixed(record.bytes) + record.collective + 1);
}

}  // namespace

void StepMeter::Add(std::span<const TraceRecord> records, std::vector<TrainingStep>* steps) {
  for (const TraceRecord& record : records) {
    if (record.kind != TraceKind::kDone || record.status != 0 || record.id == 0) continue;
    Count(record);
    bytes_ += record.bytes;
    step_sum_ += DigestOf(record);
    ++since_pivot_;
    if (record.id != pivot_) continue;
    const auto now = static_cast<int64_t>(record.stamp);
    if (begun_ns_ != 0 && now > begun_ns_) steps->push_back({now - begun_ns_, bytes_, begun_ns_});
    if (signature_ == 0 && step_sum_ == last_sum_) signature_ = std::max<uint64_t>(1, step_sum_);
    last_sum_ = std::exchange(step_sum_, 0);
    longest_ = std::max(longest_, since_pivot_);
    begun_ns_ = now;
    bytes_ = since_pivot_ = 0;
  }
}

void StepMeter::Count(const TraceRecord& record) {
  // The script continues with other names, or never repeats one.
  const bool gone = pivot_ != 0 && since_pivot_ > 3 * longest_ + 100;
  if (gone || names_.size() > kMostNames) *this = StepMeter();
  if (pivot_ != 0) return;
  Name& name = names_[record.id];
  name.bytes = record.bytes;
  if (++name.seen >= kOften) ChoosePivot(name.seen >= kOftenEnough);
}

void StepMeter::ChoosePivot(bool now) {
  const Name *largest = nullptr, *best = nullptr;
  uint32_t best_id = 0;
  for (const auto& [id, name] : names_) {
    if (largest == nullptr || name.bytes > largest->bytes) largest = &name;
    if (name.seen < 2 || (best != nullptr && name.bytes <= best->bytes)) continue;
    best = &name;
    best_id = id;
  }
  if (best != largest && !now) return;
  pivot_ = best_id;
  longest_ = names_.size();
  names_.clear();
}

double ScoreOf(std::span<const TrainingStep> steps) {
  std::vector<double> scores;
  for (const TrainingStep& step : steps) {
    scores.push_back(static_cast<double>(step.bytes) * 1e3 / static_cast<double>(step.duration_ns));
  }
  return Median(std::move(scores));
}

}  // namespace hvd
