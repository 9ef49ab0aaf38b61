#include "launcher/tuning/exchange_meter.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/base/travels_alone.h"

namespace hvd {
namespace {

constexpr uint8_t kAllreduceNumber = 0;  // HVD_ALLREDUCE
// Enough for the warm-up of any usual job, and for seconds of a script without steps.
constexpr size_t kMostOperations = 100'000;
constexpr double kFarOff = 0.2;  // relative error allowed for a model on its own steps

TraceActivity ActivityIn(const TraceRecord& record) {
  return static_cast<TraceActivity>(record.part & 0xff);
}

bool IsExchange(TraceActivity activity) {
  return activity == TraceActivity::kExchange || activity == TraceActivity::kGloo ||
         activity == TraceActivity::kMpi;
}

double StampUs(uint64_t stamp) { return static_cast<double>(stamp) / 1e3; }

const TrainingStep& MiddleOf(std::vector<TrainingStep>& steps) {
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end(),
                   [](const auto& a, const auto& b) { return a.duration_ns < b.duration_ns; });
  return *middle;
}

}  // namespace

bool ExchangeMeter::full() const { return ended_ >= kMostOperations; }

// The activities of an operation follow each other, and its end follows immediately.
void ExchangeMeter::Add(std::span<const TraceRecord> records) {
  for (const TraceRecord& record : records) {
    if (!activities_.empty() && activities_.front().id != record.id) activities_.clear();
    if (record.kind == TraceKind::kActivity) activities_.push_back(record);
    if (record.kind != TraceKind::kDone) continue;
    if (record.status == 0 && !full()) End(record);
    ++ended_;
    activities_.clear();
  }
}

// Each activity lasts until the next. All tensors of an exchange record it: each is a part of a
// sample.
void ExchangeMeter::End(const TraceRecord& done) {
  ExchangeSample sample;
  ObservedOperation seen{.fuses = done.collective == kAllreduceNumber &&
                                  done.bytes < kTravelsAloneBytes};
  bool waited = false, exchanged = false;
  for (size_t i = 0; i + 1 < activities_.size(); ++i) {
    const TraceRecord& record = activities_[i];
    const double begin = StampUs(record.stamp), end = StampUs(activities_[i + 1].stamp);
    const TraceActivity activity = ActivityIn(record);
    if (activity == TraceActivity::kWaitForHosts) {
      seen.ready_us = begin;
      waited = true;
    } else if (IsExchange(activity)) {
      exchanged = true;
      seen.done_us = end;
      sample.bytes += static_cast<double>(record.bytes);
      sample.tensors = std::max<size_t>(1, record.rank);
      sample.exchange_us += end - begin;
    } else if (exchanged && activity == TraceActivity::kCopyOut) {
      seen.done_us = end;
      sample.copy_us += end - begin;
    } else if (activity == TraceActivity::kCopyIn && waited) {
      sample.copy_us += end - begin;
    } else if (activity == TraceActivity::kHostReduce) {
      sample.exchange_us += end - begin;
    }
  }
  if (!waited || !exchanged) return;
  seen.bytes = static_cast<double>(done.bytes);
  sample.weight = 1 / static_cast<double>(sample.tensors);
  samples_.push_back(sample);
  operations_.push_back(seen);
}

Result<StepModel> ExchangeMeter::Model(std::span<const TrainingStep> steps,
                                       double fusion_bytes) const {
  if (steps.empty()) return InvalidArgument("no step was seen");
  std::vector<TrainingStep> sorted(steps.begin(), steps.end());
  const TrainingStep& step = MiddleOf(sorted);
  const double begin = static_cast<double>(step.begun_ns) / 1e3;
  const double period = static_cast<double>(step.duration_ns) / 1e3;
  std::vector<ObservedOperation> inside;
  for (const ObservedOperation& seen : operations_) {
    if (seen.done_us > begin && seen.done_us <= begin + period) inside.push_back(seen);
  }
  const Result<ExchangeCosts> costs = FitCosts(samples_);
  if (!costs.ok()) return costs.status();
  Result<StepModel> model = StepModel::Make(*costs, std::move(inside), period);
  if (!model.ok()) return model;
  const double predicted = model->StepUs(fusion_bytes);
  if (std::abs(predicted / period - 1) > kFarOff) {
    return InvalidArgument(Format("the model gives steps of {} us, and they take {} us",
                                  std::lround(predicted), std::lround(period)));
  }
  return model;
}

}  // namespace hvd
