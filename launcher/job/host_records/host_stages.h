// HostStages: the start-up of all hosts, from a name to an agent that is ready: the stage of each,
// why it failed, and what to tell the user. Pure: time is passed in.
#ifndef HVD_LAUNCHER_JOB_HOST_RECORDS_HOST_STAGES_H_
#define HVD_LAUNCHER_JOB_HOST_RECORDS_HOST_STAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/job/host_records/host_progress.h"
#include "launcher/job/host_records/stage_words.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

struct StageLimits {
  std::array<Duration, kHostStages> of;  // by HostStage
  // Of a name of which a name server has said that it has no address; nothing: that of its stage.
  std::optional<Duration> unknown_name = {};

  static StageLimits Default();
  // "connect=20,login=60" over the defaults.
  static Result<StageLimits> Parse(std::string_view text);
  Duration& at(HostStage stage) { return of[static_cast<size_t>(stage)]; }
  Duration at(HostStage stage) const { return of[static_cast<size_t>(stage)]; }
};

class HostStages {
 public:
  // Once a host has failed, how long the others have to fail or get ready, so that one report
  // covers all.
  static constexpr Duration kSettle = std::chrono::seconds(3);

  HostStages(size_t hosts, StageLimits limits);

  void Begin(TimePoint now);
  // Adds a host. From now on hosts are independent: the failure of one does not stop attempts to
  // reach others.
  void Add(TimePoint now);
  void Enter(uint32_t host, HostStage stage, TimePoint now);
  // An attempt failed and is retried. The limit counts from the first attempt.
  void Trouble(uint32_t host, HostTrouble trouble, TimePoint now);
  // `reason` is a sentence without the host's name and the stage.
  void Fail(uint32_t host, std::string reason, TimePoint now);
  // Excludes this much time, in which hvdrun was stopped.
  void Shift(Duration away);
  // Fails the hosts that are over the limit of their stage.
  void Expire(TimePoint now);

  HostStage stage(uint32_t host) const { return hosts_[host].progress.stage(); }
  bool All(HostStage stage) const { return Count(stage) == hosts_.size(); }
  // Each has failed, is ready, or waits for others.
  bool NoneInFlight() const { return due_.empty(); }
  bool any_failed() const { return settle_at_.has_value(); }
  // Some host has failed, and every other one has failed, is ready or waits for others, or kSettle
  // has passed.
  bool Lost(TimePoint now) const;
  // When Expire, PopSlow or Lost may have a new result without another event.
  std::optional<TimePoint> deadline() const;
  // The same without Lost: when Expire or PopSlow has something to do.
  std::optional<TimePoint> NextExpiry() const;

  // A sentence about the hosts that became slow since the last call; empty: none.
  std::string PopSlow(const std::vector<std::string>& names, TimePoint now);
  // "2 ready, 1 logging in, 5 connecting".
  std::string Counts() const;
  // All hosts, those with the same trouble on one line. Ends with a line break.
  std::string Report(const std::vector<std::string>& names) const;
  // The trouble of a host that has failed: the stage and the sentence.
  std::string TroubleOf(uint32_t host) const { return hosts_[host].progress.StateText(); }
  HostStage failed_in(uint32_t host) const { return hosts_[host].progress.failed_in(); }
  // The last attempt failed, and the host has made no progress since.
  bool tried_again(uint32_t host) const { return hosts_[host].progress.tried_again(); }
  // The first that failed; 0 while none has.
  uint32_t first_failed() const { return first_failed_; }

 private:
  struct Host {
    HostProgress progress;
    TimePoint due = TimePoint::max();  // its entry in due_
  };

  size_t Count(HostStage stage) const { return counts_[static_cast<size_t>(stage)]; }
  void NoteMove(uint32_t host, HostStage from);
  void Schedule(uint32_t host);
  void GiveUpTries(TimePoint now);
  Duration LimitOf(const HostProgress& progress) const;

  StageLimits limits_;
  std::vector<Host> hosts_;
  // Maintained incrementally, so that a job with many hosts does not scan all of them whenever one
  // makes progress.
  std::array<size_t, static_cast<size_t>(HostStage::kFailed) + 1> counts_{};
  std::set<std::pair<TimePoint, uint32_t>> due_;  // when a host is slow, or over its limit
  std::optional<TimePoint> settle_at_;
  uint32_t first_failed_ = 0;
  bool standing_alone_ = false;
};

// "a, b, c and 5 more".
std::string HostNames(const std::vector<std::string>& names);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_HOST_RECORDS_HOST_STAGES_H_
