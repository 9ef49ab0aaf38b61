// HostProgress: the start-up of one host, from its name to an agent that is ready: its stage, since
// when, whether that is slow or over the limit, and why it failed. Pure: time is passed in.
#ifndef HVD_LAUNCHER_JOB_HOST_RECORDS_HOST_PROGRESS_H_
#define HVD_LAUNCHER_JOB_HOST_RECORDS_HOST_PROGRESS_H_

#include <string>

#include "launcher/job/host_records/stage_words.h"
#include "runtime/base/clock.h"

namespace hvd {

class HostProgress {
 public:
  // A host that has made no progress for this long is named; one that is being sent hvdrun, or is
  // being retried, sooner.
  static constexpr Duration kSlow = std::chrono::seconds(10);
  static constexpr Duration kSending = std::chrono::seconds(1);
  static constexpr Duration kTroubled = std::chrono::seconds(2);
  // One that is still being retried is named again this often.
  static constexpr Duration kStillTroubled = std::chrono::minutes(1);

  // Nothing changes any more once it has failed.
  void Begin(TimePoint now) { since_ = began_ = now; }
  void Enter(HostStage stage, TimePoint now);
  // The limit counts from the first attempt, or from when an attempt first came as far as this.
  void Trouble(HostTrouble trouble, TimePoint now);
  void Fail(std::string reason);
  // Excludes this much time.
  void Shift(Duration away);

  HostStage stage() const { return stage_; }
  bool failed() const { return stage_ == HostStage::kFailed; }
  // Where it was when it failed.
  HostStage failed_in() const { return failed_in_; }
  // The last attempt failed, and the host has made no progress since.
  bool tried_again() const { return troubled() && stage_ == trouble_.stage; }
  // Why the last attempt failed; "": none failed, or the host has made progress since.
  const std::string& trouble() const { return trouble_.reason; }

  // When the host is to be named or given up; `limit`: of its stage. TimePoint::max(): never.
  TimePoint NextDue(Duration limit) const;
  // It is still starting and has reached the limit of its stage.
  bool IsOver(Duration limit, TimePoint now) const;
  // It is still starting, and due to be named: for the first time in this stage, or again.
  bool IsSlow(TimePoint now) const;
  // The text of the line that names it, "logging in for 10 s"; "": it is being sent hvdrun. It
  // counts as named from now on.
  std::string PopSlow();
  // The reason of its failure once its stage is over: "it took longer than 10 s; ...", with advice.
  std::string OverText(Duration limit) const;
  // "logging in: REASON" of one that failed, "still logging in", "ready".
  std::string StateText() const;

 private:
  bool troubled() const { return !trouble_.reason.empty(); }
  void Restart(TimePoint now);
  Duration SlowAfter() const;

  HostStage stage_ = HostStage::kResolve;
  HostStage failed_in_ = HostStage::kResolve;
  TimePoint since_{};                         // the limit counts from here
  TimePoint began_{};                         // the same, unless it entered the stage again
  Duration named_after_{};                    // the wait for which it was last named; 0: never
  HostTrouble trouble_;                       // if that is where it is, it is tried again
  HostStage furthest_ = HostStage::kResolve;  // of the failed attempts
  std::string reason_;                        // of its failure
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_HOST_RECORDS_HOST_PROGRESS_H_
