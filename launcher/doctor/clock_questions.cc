#include "launcher/doctor/clock_questions.h"

#include <utility>

namespace hvd {

AskTime ClockQuestions::Ask(TimePoint now) {
  open_ = true;
  asked_ = now;
  return AskTime{answered_};
}

bool ClockQuestions::Receive(const TimeTold& told, TimePoint now) {
  if (!open_ || told.number != answered_) return false;
  open_ = false;
  ++answered_;
  const Duration half = (now - asked_) / 2;
  const int64_t here = (asked_ + half).time_since_epoch().count() + wall_minus_steady_ns_;
  if (!skew_ || half < skew_->uncertainty) {
    skew_ = ClockSkew{std::chrono::nanoseconds(told.wall_ns - here), half};
  }
  return true;
}

}  // namespace hvd
