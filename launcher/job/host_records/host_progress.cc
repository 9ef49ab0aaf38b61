#include "launcher/job/host_records/host_progress.h"

#include <algorithm>
#include <utility>

#include "launcher/output/text/phrases.h"

namespace hvd {

void HostProgress::Enter(HostStage stage, TimePoint now) {
  if (failed()) return;
  const bool moves = stage == HostStage::kBundle && stage_ == stage;
  const bool tries = troubled() && stage <= HostStage::kKeyExchange;
  const bool again = moves || tries;
  if (!tries) trouble_ = {};
  stage_ = stage;
  since_ = tries && stage == trouble_.stage ? began_ : now;
  if (!again) Restart(now);
}

void HostProgress::Restart(TimePoint now) {
  began_ = now;
  named_after_ = {};
}

void HostProgress::Trouble(HostTrouble trouble, TimePoint now) {
  if (failed()) return;
  if (!troubled()) {
    furthest_ = trouble.stage;
  } else if (trouble.stage > furthest_) {
    furthest_ = trouble.stage;
    Restart(now);
  }
  trouble_ = std::move(trouble);
  stage_ = trouble_.stage;
  since_ = began_;
}

void HostProgress::Fail(std::string reason) {
  if (failed()) return;
  failed_in_ = stage_;
  reason_ = std::move(reason);
  stage_ = HostStage::kFailed;
}

void HostProgress::Shift(Duration away) {
  since_ += away;
  began_ += away;
}

// How long after its beginning it is to be named next.
Duration HostProgress::SlowAfter() const {
  constexpr Duration kNever = std::chrono::hours(24 * 365);
  if (named_after_ > Duration::zero())
    return tried_again() ? (named_after_ / kStillTroubled + 1) * kStillTroubled : kNever;
  if (tried_again()) return kTroubled;
  return stage_ == HostStage::kBundle ? kSending : kSlow;
}

TimePoint HostProgress::NextDue(Duration limit) const {
  if (!InFlight(stage_)) return TimePoint::max();
  const TimePoint over = since_ + limit;
  return std::min(over, began_ + SlowAfter());
}

bool HostProgress::IsOver(Duration limit, TimePoint now) const {
  return InFlight(stage_) && now >= since_ + limit;
}

bool HostProgress::IsSlow(TimePoint now) const {
  return InFlight(stage_) && now >= began_ + SlowAfter();
}

std::string HostProgress::PopSlow() {
  named_after_ = SlowAfter();
  if (stage_ == HostStage::kBundle) return "";
  const std::string waited = " for " + SecondsText(named_after_);
  if (!tried_again()) return StageText(stage_) + waited;
  if (!trouble_.no_answer.empty()) return "no sshd yet" + waited + ": " + trouble_.no_answer;
  return (stage_ == HostStage::kResolve ? "no DNS answer yet" : StageText(stage_)) + waited;
}

std::string HostProgress::OverText(Duration limit) const {
  const StageTexts& words = TextsOf(stage_);
  const std::string seconds = SecondsText(limit);
  const std::string what = tried_again()
                               ? trouble_.reason + "; it was tried again for " + seconds + ", and"
                               : "it took longer than " + seconds + "; " + words.advice;
  return what + " --stage-timeouts " + words.name + "=N allows more seconds";
}

std::string HostProgress::StateText() const {
  if (failed()) return std::string(StageText(failed_in_)) + ": " + reason_;
  if (!InFlight(stage_)) return "ready";
  return std::string("still ") + StageText(stage_);
}

}  // namespace hvd
