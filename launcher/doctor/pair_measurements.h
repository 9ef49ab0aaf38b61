// PairMeasurements: the rounds in which pairs of hosts are measured, and the result of each pair.
// Pure: answers and the time in, questions and PairReports out.
#ifndef HVD_LAUNCHER_DOCTOR_PAIR_MEASUREMENTS_H_
#define HVD_LAUNCHER_DOCTOR_PAIR_MEASUREMENTS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/doctor/probed_hosts.h"
#include "launcher/doctor/report/doctor_report.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

using HostPair = std::pair<uint32_t, uint32_t>;  // the smaller number first

// The pairs of hosts that prove themselves to each other (connectivity_probe.h): all of them up to
// 16 hosts.
std::vector<HostPair> PairsOf(uint32_t hosts);

// Each pair once; each host in one pair of a round at most, so that no measurement disturbs another
// at its ends.
std::vector<std::vector<HostPair>> RoundsOf(const std::vector<HostPair>& pairs);

class PairMeasurements {
 public:
  // A question and the host that gets it.
  using Question = std::pair<uint32_t, MeasurePair>;

  // Both outlive it. Pairs are added to the report as their rounds begin.
  PairMeasurements(DoctorReport& report, const ProbedHosts& probed)
      : report_(report), probed_(probed) {}

  // From here on the probed hosts stay as they are.
  void Plan();
  // No pair of the round is waited for any more.
  bool RoundIsOver() const { return awaited_.empty(); }
  bool AllRoundsBegan() const { return round_ == rounds_.size(); }
  // A pair with a host that is lost, or that does not reach the other, is not measured.
  std::vector<Question> BeginRound(const std::function<bool(uint32_t)>& is_lost, TimePoint now);
  void Receive(uint32_t host, const PairMeasured& measured);
  // The pairs that are waited for with this host.
  void GiveUp(uint32_t host, const std::string& why);
  // At deadline(), or whenever: gives up answers that are late.
  void Tick(TimePoint now);
  void Interrupt();

  // Of the round.
  TimePoint deadline() const { return deadline_; }
  // "round 2 of 5".
  std::string Progress() const;

 private:
  void Begin(uint32_t a, uint32_t b, const std::function<bool(uint32_t)>& is_lost,
             std::vector<Question>* questions);
  // "" when it can be measured.
  std::string ObstacleBetween(uint32_t a, uint32_t b,
                              const std::function<bool(uint32_t)>& is_lost) const;

  DoctorReport& report_;
  const ProbedHosts& probed_;
  std::vector<std::vector<HostPair>> rounds_;        // of numbers of probed hosts
  size_t round_ = 0;                                 // that have begun
  std::set<std::pair<uint32_t, uint32_t>> awaited_;  // (host, index of the pair in the report)
  TimePoint deadline_{};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_PAIR_MEASUREMENTS_H_
