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

  // Nothing changes any more once it has failed.
  void Begin(TimePoint now) { since_ = began_ = now; }
  void Enter(HostStage stage, TimePoint now);
  // An attempt in this stage failed and is retried. The limit counts from the first attempt.
  void Trouble(HostStage stage, std::string reason);
  void Fail(std::string reason);
  // Excludes this much time.
  void Shift(Duration away);

  HostStage stage() const { return stage_; }
  bool failed() const { return stage_ == HostStage::kFailed; }
  // Where it was when it failed.
  HostStage failed_in() const { return failed_in_; }
  // The last attempt failed, and the host has made no progress since.
  bool tried_again() const { return !trouble_.empty() && stage_ == troubled_in_; }
  // Why the last attempt failed; "": none failed, or the host has made progress since.
  const std::string& trouble() const { return trouble_; }

  // When the host is to be named or given up; `limit`: of its stage. TimePoint::max(): never.
  TimePoint NextDue(Duration limit) const;
  // It is still starting and has reached the limit of its stage.
  bool IsOver(Duration limit, TimePoint now) const;
  // It is still starting, has not been named in this stage, and is now due to be.
  bool IsSlow(TimePoint now) const;
  // The text of the line that names it, "logging in for 10 s"; "": it is being sent hvdrun. It
  // counts as named from now on.
  std::string PopSlow();
  // The reason of its failure once its stage is over: "it took longer than 10 s; ...", with advice.
  std::string OverText(Duration limit) const;
  // "logging in: REASON" of one that failed, "still logging in", "ready".
  std::string StateText() const;

 private:
  Duration SlowAfter() const;

  HostStage stage_ = HostStage::kResolve;
  HostStage failed_in_ = HostStage::kResolve;
  TimePoint since_{};                            // the limit counts from here
  TimePoint began_{};                            // the same, unless it entered the stage again
  bool named_ = false;                           // as slow
  std::string trouble_;                          // of the last failed attempt
  HostStage troubled_in_ = HostStage::kResolve;  // if that is where it is, it is tried again
  std::string reason_;                           // of its failure
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_HOST_RECORDS_HOST_PROGRESS_H_
