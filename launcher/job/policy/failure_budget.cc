#include "launcher/job/policy/failure_budget.h"

#include <algorithm>
#include <utility>

#include "configs/message_text.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr uint32_t kMostFailures = 1'000'000;
constexpr uint32_t kMostTime = 1'000'000;  // of any unit: 2700 years at most
constexpr std::pair<char, std::chrono::seconds> kUnits[] = {
    {'s', std::chrono::seconds(1)},
    {'m', std::chrono::minutes(1)},
    {'h', std::chrono::hours(1)},
    {'d', std::chrono::hours(24)},
};

std::optional<uint32_t> Number(std::string_view text, uint32_t most) {
  const auto number = ParseWhole<uint32_t>(text);
  return number && *number <= most ? number : std::nullopt;
}

std::optional<Duration> Time(std::string_view text) {
  std::chrono::seconds unit(1);
  for (const auto& [letter, length] : kUnits) {
    if (!text.ends_with(letter)) continue;
    unit = length;
    text.remove_suffix(1);
    break;
  }
  const std::optional<uint32_t> count = Number(text, kMostTime);
  if (!count || *count == 0) return std::nullopt;
  return *count * unit;
}

// In the largest unit that fits: "1 h", "90 s".
std::string WindowText(Duration window) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(window);
  auto fits = std::find_if(std::rbegin(kUnits), std::rend(kUnits), [&](const auto& unit) {
    return seconds % unit.second == std::chrono::seconds(0);
  });
  return Format("{} {}", seconds / fits->second,
                fits->first == 'm' ? "min" : std::string(1, fits->first));
}

Status NoLimit(std::string_view text) {
  return InvalidArgument("--max-failures " + Quoted(text) +
                         " is not a number of failures, or one within a time; try "
                         "--max-failures 10, or --max-failures 10/1h (s, m, h or d)");
}

}  // namespace

Result<FailureLimit> ParseFailureLimit(std::string_view text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const std::optional<uint32_t> most = Number(text.substr(0, slash), kMostFailures);
  if (!most) return NoLimit(text);
  FailureLimit limit{.most = *most};
  if (slash == text.size()) return limit;
  limit.window = Time(text.substr(slash + 1));
  if (!limit.window) return NoLimit(text);
  return limit;
}

bool FailureBudget::Spend(TimePoint now) {
  failures_.push_back(now);
  if (failures_.size() > size_t{limit_.most} + 1) failures_.pop_front();
  return CountedAt(now) <= limit_.most;
}

void FailureBudget::Shift(Duration away) {
  for (TimePoint& failure : failures_) failure += away;
}

uint32_t FailureBudget::CountedAt(TimePoint now) const {
  return static_cast<uint32_t>(std::count_if(
      failures_.begin(), failures_.end(),
      [&](TimePoint failure) { return !limit_.window || now - failure < *limit_.window; }));
}

std::string FailureBudget::Text(TimePoint now) const {
  std::string text = Format("{} of {}{}", CountedAt(now), limit_.most,
                            limit_.most == 1 ? " failure" : " failures");
  return limit_.window ? text + " within " + WindowText(*limit_.window) : text;
}

}  // namespace hvd
