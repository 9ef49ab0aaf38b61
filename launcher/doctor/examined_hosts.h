// ExaminedHosts: the hosts of an examination: how far each has come, which answers of it are
// awaited, and the lines of the report about it. Pure: the time is passed in.
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

// How far the clock of a host is from ours, by asking it a few times. The answer was given at some
// time between the question and its arrival, so the quickest answer bounds it best.
class ClockQuestions {
 public:
  static constexpr uint32_t kQuestions = 5;

  // `wall_minus_steady_ns`: our clock since 1970 minus the one that is passed in.
  explicit ClockQuestions(int64_t wall_minus_steady_ns)
      : wall_minus_steady_ns_(wall_minus_steady_ns) {}

  // The next question; one at a time.
  AskTime Ask(TimePoint now);
  // False when nobody asked for this.
  bool Receive(const TimeReply& reply, TimePoint now);
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

struct ExaminedHost {
  explicit ExaminedHost(int64_t wall_minus_steady_ns) : clock(wall_minus_steady_ns) {}

  bool open = true;            // its line has not ended
  bool greeted = false;        // its agent has said its first word
  std::string identity;        // as in AgentFacts
  bool ending = false;         // by force
  bool failure_noted = false;  // in the report
  bool examining = false, proving = false;
  ClockQuestions clock;
  TimePoint exam_until{};
};

class ExaminedHosts {
 public:
  // `report` outlives this object, and gets a line for each of so many hosts before Begin.
  ExaminedHosts(DoctorReport& report, size_t hosts, StageLimits limits,
                int64_t wall_minus_steady_ns)
      : report_(report),
        stages_(hosts, limits),
        hosts_(hosts, ExaminedHost(wall_minus_steady_ns)) {}

  void Begin(TimePoint now);
  TimePoint begun() const { return begun_; }
  size_t size() const { return hosts_.size(); }
  ExaminedHost& operator[](uint32_t host) { return hosts_[host]; }

  // It has come to this stage; an attempt in this stage failed.
  void Enter(uint32_t host, HostStage stage, TimePoint now);
  void Trouble(uint32_t host, HostStage stage, const std::string& reason);
  void Fail(uint32_t host, const std::string& trouble, TimePoint now);
  // Hosts that are too slow fail, and late answers are awaited no more.
  void Expire(TimePoint now);
  std::optional<TimePoint> NextExpiry() const;
  // Failures that the report does not have yet. Returns the hosts that cannot be asked any more.
  std::vector<uint32_t> NoteFailures(TimePoint now);
  // The user ended the examination: hosts that have not greeted are told so in the report.
  void Interrupt(TimePoint now);

  // As a run merges them (final_plan.h): two names of one host are one host.
  void MergeNames(TimePoint now);
  // A host that fails to reach one that was lost meanwhile, and no other, is not to blame.
  void ForgiveTheLost(const ProbedHosts& probed);

  // Its agent has not greeted, and it has not failed.
  bool IsConnecting(uint32_t host) const;
  bool AnyConnecting() const;
  bool IsLost(uint32_t host) const { return !hosts_[host].open; }
  // The host answers what the others ask, and has an agent for the next question.
  bool Takes(uint32_t host) const;
  size_t Count(bool ExaminedHost::*is) const;
  bool Any(bool ExaminedHost::*is) const { return Count(is) > 0; }

  // "2 ready, 1 logging in, 5 connecting".
  std::string Counts() const { return stages_.Counts(); }
  // Hosts that have been slow since the last call, in words; empty: none.
  std::string TakeSlow(TimePoint now);

 private:
  DoctorReport& report_;
  HostStages stages_;
  std::vector<ExaminedHost> hosts_;
  TimePoint begun_{};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_EXAMINED_HOSTS_H_
