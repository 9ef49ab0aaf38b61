#include "autotune/step_model.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

namespace hvd {
namespace {

constexpr size_t kFewestSamples = 8;
constexpr double kLeastSpan = 4;  // of the sizes
// As in the runtime: at most this many exchanges are in flight; tensors that become ready meanwhile
// are fused.
constexpr size_t kMostInFlight = 2;
constexpr double kNever = std::numeric_limits<double>::infinity();

// Fits a line through points by least squares of relative errors: an exchange that was delayed
// counts for little, and small exchanges count as much as large ones.
struct RelativeLine {
  double ones = 0, xs = 0, squares = 0, ones_of = 0, xs_of = 0;

  void Add(double x, double y, double weight) {
    const double u = 1 / y, v = x / y;
    ones += weight * u * u;
    xs += weight * u * v;
    squares += weight * v * v;
    ones_of += weight * u;
    xs_of += weight * v;
  }
  double Level() const { return ones_of / ones; }
  double SlopeFromZero() const { return xs_of / squares; }
  // Level and slope, neither below 0.
  std::pair<double, double> Fitted() const {
    const double determinant = ones * squares - xs * xs;
    const double level = (ones_of * squares - xs_of * xs) / determinant;
    const double slope = (xs_of * ones - ones_of * xs) / determinant;
    if (!std::isfinite(level) || slope < 0) return {Level(), 0};
    if (level < 0) return {0, SlopeFromZero()};
    return {level, slope};
  }
};

bool IsUsable(const ExchangeSample& sample) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  return positive(sample.bytes) && positive(sample.exchange_us) && positive(sample.weight) &&
         std::isfinite(sample.copy_us) && sample.copy_us >= 0;
}

bool IsNumber(const ObservedOperation& seen) {
  return std::isfinite(seen.ready_us) && std::isfinite(seen.done_us) && std::isfinite(seen.bytes) &&
         seen.bytes >= 0;
}

struct Rest {
  size_t before = 0;  // the operation that ends it
  double us = -kNever;
};

// The longest time in which nothing is in flight. Operations in the order in which they become
// ready; the step is periodic: an operation that is later in this step was earlier in the previous
// one.
Rest LongestRest(const std::vector<ObservedOperation>& operations, double period_us) {
  std::vector<double> later(operations.size() + 1, -kNever);
  for (size_t i = operations.size(); i-- > 0;)
    later[i] = std::max(later[i + 1], operations[i].done_us - period_us);
  Rest longest;
  double earlier = -kNever;
  for (size_t i = 0; i < operations.size(); ++i) {
    const double rest = operations[i].ready_us - std::max(earlier, later[i]);
    if (rest > longest.us) longest = {i, rest};
    earlier = std::max(earlier, operations[i].done_us);
  }
  return longest;
}

// The exchanges in flight between hosts, one after the other.
class ExchangeQueue {
 public:
  bool MayIssue() const { return done_at_.size() < kMostInFlight; }
  void Issue(double now, double cost) {
    free_at_ = std::max(now, free_at_) + cost;
    done_at_.push_back(free_at_);
  }
  double NextDone() const { return done_at_.empty() ? kNever : done_at_.front(); }
  void Advance(double now) {
    while (!done_at_.empty() && done_at_.front() <= now) done_at_.pop_front();
  }
  double free_at() const { return free_at_; }

 private:
  double free_at_ = 0;
  std::deque<double> done_at_;
};

}  // namespace

double ExchangeCosts::Of(double bytes, size_t tensors) const {
  return alpha_us + beta_us_per_byte * bytes + (tensors > 1 ? gamma_us_per_byte * bytes : 0);
}

Result<ExchangeCosts> FitCosts(std::span<const ExchangeSample> samples) {
  RelativeLine line;
  size_t used = 0;
  double least = kNever, most = 0, copied_bytes = 0, copy_us = 0;
  for (const ExchangeSample& sample : samples) {
    if (!IsUsable(sample)) continue;
    ++used;
    least = std::min(least, sample.bytes);
    most = std::max(most, sample.bytes);
    line.Add(sample.bytes, sample.exchange_us, sample.weight);
    if (sample.tensors < 2) continue;
    copied_bytes += sample.weight * sample.bytes;
    copy_us += sample.weight * sample.copy_us;
  }
  if (used < kFewestSamples) return InvalidArgument("there were too few exchanges between hosts");
  if (most < kLeastSpan * least)
    return InvalidArgument("the exchanges between hosts had nearly the same size");
  const auto [alpha, beta] = line.Fitted();
  return ExchangeCosts{alpha, beta, copied_bytes > 0 ? copy_us / copied_bytes : 0};
}

Result<StepModel> StepModel::Make(const ExchangeCosts& costs,
                                  std::vector<ObservedOperation> operations, double period_us) {
  const size_t count = operations.size();
  if (count < 2) return InvalidArgument("a step has fewer than two collectives");
  if (!std::all_of(operations.begin(), operations.end(), IsNumber) || !std::isfinite(period_us) ||
      !std::isfinite(costs.Of(1, 2)))
    return InvalidArgument("a time or a size of the step is not a number");
  std::stable_sort(operations.begin(), operations.end(),
                   [](const auto& a, const auto& b) { return a.ready_us < b.ready_us; });
  const auto [first, rest] = LongestRest(operations, period_us);
  if (!(rest >= 0)) return InvalidArgument("a step begins before the one before has ended");
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = (first + i) % count;
    const ObservedOperation& seen = operations[at];
    const double moved = (at < first ? period_us : 0) - operations[first].ready_us;
    tensors.push_back({seen.ready_us + moved, seen.bytes, seen.fuses});
  }
  return StepModel(costs, std::move(tensors), rest);
}

// The runtime's queue in simulated time. Tensors become ready one by one: the first is submitted
// before the second is ready, however soon that is. An exchange takes those that wait, in their
// order, up to the threshold.
double StepModel::StepUs(double fusion_bytes) const {
  ExchangeQueue queue;
  double now = 0;
  size_t ready = 0, next = 0;  // tensors[next..ready) wait
  while (next < tensors_.size()) {
    queue.Advance(now);
    if (next == ready || !queue.MayIssue()) {
      const double arrival = ready < tensors_.size() ? tensors_[ready].ready_us : kNever;
      const double done = queue.NextDone();
      now = std::max(now, std::min(arrival, done));
      if (arrival <= done) ++ready;
      continue;
    }
    const size_t begin = next;
    double bytes = tensors_[next++].bytes;
    while (next < ready && tensors_[begin].fuses && tensors_[next].fuses &&
           bytes + tensors_[next].bytes <= fusion_bytes)
      bytes += tensors_[next++].bytes;
    queue.Issue(now, costs_.Of(bytes, next - begin));
  }
  return std::max(queue.free_at(), tensors_.back().ready_us) + rest_us_;
}

}  // namespace hvd
