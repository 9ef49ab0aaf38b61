// ClockQuestions: how far the clock of a host is from ours, by asking it a few times. The answer
// was given at some time between the question and its arrival, so the quickest answer bounds it
// best. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_CLOCK_QUESTIONS_H_
#define HVD_LAUNCHER_DOCTOR_CLOCK_QUESTIONS_H_

#include <cstdint>
#include <optional>

#include "launcher/doctor/report/doctor_report.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

class ClockQuestions {
 public:
  static constexpr uint32_t kQuestions = 5;

  // `wall_minus_steady_ns`: our clock since 1970 minus the one that is passed in.
  explicit ClockQuestions(int64_t wall_minus_steady_ns)
      : wall_minus_steady_ns_(wall_minus_steady_ns) {}

  // The next question; one at a time.
  AskTime Ask(TimePoint now);
  // False when nobody asked for this.
  bool Receive(const TimeTold& told, TimePoint now);
  // All questions are answered.
  bool over() const { return answered_ == kQuestions; }
  // By the answers so far; nothing before the first.
  const std::optional<ClockSkew>& skew() const { return skew_; }

 private:
  int64_t wall_minus_steady_ns_;
  bool open_ = false;  // a question has no answer yet
  TimePoint asked_{};
  uint32_t answered_ = 0;
  std::optional<ClockSkew> skew_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_CLOCK_QUESTIONS_H_
