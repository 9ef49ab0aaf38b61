// Examination: the state machine of hvdrun doctor: the stages of a run up to the connectivity
// probe, on all hosts in parallel; then the clock and resources of each host; then each pair of
// hosts, in rounds. Every question has a deadline, so a failed host does not block others. Pure:
// takes agents' messages and the time, returns messages for agents and a report.
#ifndef HVD_LAUNCHER_DOCTOR_EXAMINATION_H_
#define HVD_LAUNCHER_DOCTOR_EXAMINATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/doctor/examined_hosts.h"
#include "launcher/doctor/pair_measurements.h"
#include "launcher/doctor/probed_hosts.h"
#include "launcher/doctor/report/doctor_report.h"
#include "launcher/job/host_records/host_stages.h"
#include "launcher/wire/messages.h"

namespace hvd {

struct ExaminationHost {
  std::string name;
  bool remote = false;
};

struct ExaminationOptions {
  std::vector<ExaminationHost> hosts;
  StageLimits stage_limits = StageLimits::Default();
  std::string version;                     // required of every agent
  std::string job_key;                     // authenticates hosts to each other
  std::vector<std::string> interfaces;     // empty: all
  uint16_t first_port = 0, last_port = 0;  // both 0: any
  std::string directory, interpreter;
  std::vector<std::string> environment;  // "NAME=value"
  int64_t silence_limit_ms = 0;          // for remote agents
  int64_t wall_minus_steady_ns = 0;      // this machine's wall clock minus the clock passed in
};

// The actions on a host.
struct SendToHost {
  uint32_t host = 0;
  ToAgent message;
};
struct EndHost {  // by force
  uint32_t host = 0;
};
using ExaminationAction = std::variant<SendToHost, EndHost>;

class Examination {
 public:
  static constexpr Duration kExamLimit = std::chrono::seconds(25);  // for the examination of a host
  static constexpr Duration kFinishLimit = std::chrono::seconds(3);  // for agents to end

  explicit Examination(ExaminationOptions options);

  void Begin(TimePoint now);
  void Entered(uint32_t host, HostStage stage, TimePoint now);
  void Troubled(uint32_t host, const HostTrouble& trouble, TimePoint now);
  void Receive(uint32_t host, const ToDriver& message, TimePoint now);
  // `reason` as in AgentConnectionObserver.
  void Ended(uint32_t host, const std::string& reason, TimePoint now);
  // As in AgentConnectionObserver::OnHvdrunSkipped.
  void Skipped(uint32_t host, const std::string& what) { report_.hosts[host].skipped = what; }
  // Call at NextTick() or at any time.
  void Tick(TimePoint now);
  // Ctrl-C: the report has the facts known so far. The second call does not wait for agents.
  void Stop(TimePoint now);

  std::vector<ExaminationAction> PopActions();
  std::optional<TimePoint> NextTick() const;
  // All agents are gone.
  bool over() const { return phase_ == Phase::kOver; }
  const DoctorReport& report() const { return report_; }
  // Text on what is being waited for; empty: nothing.
  std::string Progress() const;
  // Text on hosts that have become slow since the last call; empty: none.
  std::string PopSlow(TimePoint now);

 private:
  enum class Phase : uint8_t { kReaching, kProving, kExamining, kMeasuring, kFinishing, kOver };

  void On(uint32_t host, const AgentReady& ready);
  void On(uint32_t host, const TimeReply& reply);
  void On(uint32_t host, const HostExam& exam);
  void On(uint32_t host, const ConnectivityProbed& proven);

  void Send(uint32_t host, ToAgent message);
  template <typename Messages>
  void SendEach(Messages messages);
  void Fail(uint32_t host, const std::string& trouble);
  void NoteFailures();
  void GoOn();
  void Prove();
  void OpenProbes();
  void Finish();
  void End(uint32_t host);
  template <typename Question>
  Question QuestionFor(uint32_t host) const;

  ExaminationOptions options_;
  DoctorReport report_;
  ExaminedHosts hosts_;
  ProbedHosts probed_;
  ProbeDirectories directories_;
  PairMeasurements pairs_;
  TimePoint finish_until_{};
  bool cut_ = false;
  Phase phase_ = Phase::kReaching;
  TimePoint now_{};
  std::vector<ExaminationAction> actions_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_EXAMINATION_H_
