#include "launcher/job/host_records/host_progress.h"

#include <algorithm>
#include <utility>

#include "launcher/output/text/phrases.h"

namespace hvd {

void HostProgress::Enter(HostStage stage, TimePoint now) {
  if (failed()) return;
  const bool moves = stage == HostStage::kBundle && stage_ == stage;
  const bool tries = !trouble_.empty() && stage <= HostStage::kConnect;
  const bool again = moves || tries;
  if (!tries) trouble_.clear();
  stage_ = stage;
  since_ = now;
  if (!again) {
    began_ = now;
    named_ = false;
  }
}

void HostProgress::Trouble(HostStage stage, std::string reason) {
  if (failed()) return;
  trouble_ = std::move(reason);
  stage_ = troubled_in_ = stage;
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

Duration HostProgress::SlowAfter() const {
  if (tried_again()) return kTroubled;
  return stage_ == HostStage::kBundle ? kSending : kSlow;
}

TimePoint HostProgress::NextDue(Duration limit) const {
  if (!InFlight(stage_)) return TimePoint::max();
  const TimePoint over = since_ + limit;
  return named_ ? over : std::min(over, began_ + SlowAfter());
}

bool HostProgress::IsOver(Duration limit, TimePoint now) const {
  return InFlight(stage_) && now >= since_ + limit;
}

bool HostProgress::IsSlow(TimePoint now) const {
  return InFlight(stage_) && !named_ && now >= began_ + SlowAfter();
}

std::string HostProgress::PopSlow() {
  named_ = true;
  if (stage_ == HostStage::kBundle) return "";
  const bool unresolved = tried_again() && stage_ == HostStage::kResolve;
  return (unresolved ? "no DNS answer yet" : StageText(stage_)) + std::string(" for ") +
         SecondsText(SlowAfter());
}

std::string HostProgress::OverText(Duration limit) const {
  const StageTexts& words = TextsOf(stage_);
  const std::string seconds = SecondsText(limit);
  const std::string what = tried_again()
                               ? trouble_ + "; it was tried again for " + seconds + ", and"
                               : "it took longer than " + seconds + "; " + words.advice;
  return what + " --stage-timeouts " + words.name + "=N allows more seconds";
}

std::string HostProgress::StateText() const {
  if (failed()) return std::string(StageText(failed_in_)) + ": " + reason_;
  if (!InFlight(stage_)) return "ready";
  return std::string("still ") + StageText(stage_);
}

}  // namespace hvd
