// ExaminedHosts: the hosts of an examination: the stage of each, its pending answers, and its lines
// of the report. Pure: the time is passed in.
#ifndef HVD_LAUNCHER_DOCTOR_EXAMINED_HOSTS_H_
#define HVD_LAUNCHER_DOCTOR_EXAMINED_HOSTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/doctor/probed_hosts.h"
#include "launcher/doctor/report/doctor_report.h"
#include "launcher/job/host_records/host_stages.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

// Estimates a host's clock offset by asking for its time repeatedly. The true time of an answer
// lies between question and arrival, so the fastest answer gives the best bound.
class ClockQuestions {
 public:
  static constexpr uint32_t kQuestions = 5;

  // `wall_minus_steady_ns`: this machine's wall clock minus the clock passed in.
  explicit ClockQuestions(int64_t wall_minus_steady_ns)
      : wall_minus_steady_ns_(wall_minus_steady_ns) {}

  // The next question; one at a time.
  AskTime Ask(TimePoint now);
  // False for an unsolicited reply.
  bool Receive(const TimeReply& reply, TimePoint now);
  // All questions have been answered.
  bool over() const { return answered_ == kQuestions; }
  // From the answers so far; nothing before the first.
  const std::optional<ClockSkew>& skew() const { return skew_; }

 private:
  int64_t wall_minus_steady_ns_;
  bool open_ = false;  // a question is pending
  TimePoint asked_{};
  uint32_t answered_ = 0;
  std::optional<ClockSkew> skew_;
};

struct ExaminedHost {
  explicit ExaminedHost(int64_t wall_minus_steady_ns) : clock(wall_minus_steady_ns) {}

  bool open = true;            // its connection has not ended
  bool greeted = false;        // its agent has sent its first message
  std::string identity;        // as in AgentFacts
  bool ending = false;         // by force
  bool failure_noted = false;  // in the report
  bool examining = false, proving = false;
  ClockQuestions clock;
  TimePoint exam_until{};
};

class ExaminedHosts {
 public:
  // `report` outlives this object, and has an entry for each of the `hosts` hosts before Begin.
  ExaminedHosts(DoctorReport& report, size_t hosts, StageLimits limits,
                int64_t wall_minus_steady_ns)
      : report_(report),
        stages_(hosts, limits),
        hosts_(hosts, ExaminedHost(wall_minus_steady_ns)) {}

  void Begin(TimePoint now);
  TimePoint begun() const { return begun_; }
  size_t size() const { return hosts_.size(); }
  ExaminedHost& operator[](uint32_t host) { return hosts_[host]; }

  // The host entered this stage; an attempt in this stage failed.
  void Enter(uint32_t host, HostStage stage, TimePoint now);
  void Trouble(uint32_t host, const HostTrouble& trouble, TimePoint now);
  void Fail(uint32_t host, const std::string& trouble, TimePoint now);
  // Fails hosts that are too slow, and gives up late answers.
  void Expire(TimePoint now);
  std::optional<TimePoint> NextExpiry() const;
  // Adds new failures to the report. Returns the hosts that cannot be asked any more.
  std::vector<uint32_t> NoteFailures(TimePoint now);
  // The user ended the examination: reports that for hosts that have not greeted.
  void Interrupt(TimePoint now);

  // Merges names of the same host, as a run does (final_plan.h).
  void MergeNames(TimePoint now);
  // Clears the failure of a host that could not reach lost hosts only.
  void ForgiveTheLost(const ProbedHosts& probed);

  // It has neither greeted nor failed.
  bool IsConnecting(uint32_t host) const;
  bool AnyConnecting() const;
  bool IsLost(uint32_t host) const { return !hosts_[host].open; }
  // The host is usable and has an agent for the next question.
  bool CanAsk(uint32_t host) const;
  size_t Count(bool ExaminedHost::*is) const;
  bool Any(bool ExaminedHost::*is) const { return Count(is) > 0; }

  // "2 ready, 1 logging in, 5 connecting".
  std::string Counts() const { return stages_.Counts(); }
  // Hosts that have been slow since the last call, in words; empty: none.
  std::string PopSlow(TimePoint now);

 private:
  DoctorReport& report_;
  HostStages stages_;
  std::vector<ExaminedHost> hosts_;
  TimePoint begun_{};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_EXAMINED_HOSTS_H_
