// PairMeasurements: schedules the measurements of pairs of hosts in rounds and collects their
// results. Pure.
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

// The pairs of hosts that probe each other (connectivity_probe.h): all pairs up to 16 hosts.
std::vector<HostPair> PairsOf(uint32_t hosts);

// Each pair once; each host at most once per round, so that measurements do not disturb each other
// at their ends.
std::vector<std::vector<HostPair>> RoundsOf(const std::vector<HostPair>& pairs);

class PairMeasurements {
 public:
  // A question with its recipient.
  using Question = std::pair<uint32_t, MeasurePair>;

  // Both outlive this object. Pairs are added to the report as their rounds begin.
  PairMeasurements(DoctorReport& report, const ProbedHosts& probed)
      : report_(report), probed_(probed) {}

  // Call once the probed hosts are final.
  void Plan();
  // No answer of the round is pending.
  bool RoundIsOver() const { return awaited_.empty(); }
  bool AllRoundsBegan() const { return round_ == rounds_.size(); }
  // Skips pairs with a lost host, or whose hosts do not reach each other.
  std::vector<Question> BeginRound(const std::function<bool(uint32_t)>& is_lost, TimePoint now);
  void Receive(uint32_t host, const PairMeasured& measured);
  // Gives up the pending pairs of this host.
  void GiveUp(uint32_t host, const std::string& why);
  // Gives up late answers; call at deadline() or at any time.
  void Tick(TimePoint now);
  void Interrupt();

  // Deadline of the round.
  TimePoint deadline() const { return deadline_; }
  // "round 2 of 5".
  std::string Progress() const;

 private:
  void Begin(uint32_t a, uint32_t b, const std::function<bool(uint32_t)>& is_lost,
             std::vector<Question>* questions);
  // "" if the pair can be measured.
  std::string ObstacleBetween(uint32_t a, uint32_t b,
                              const std::function<bool(uint32_t)>& is_lost) const;

  DoctorReport& report_;
  const ProbedHosts& probed_;
  std::vector<std::vector<HostPair>> rounds_;        // by number of probed host
  size_t round_ = 0;                                 // rounds begun
  std::set<std::pair<uint32_t, uint32_t>> awaited_;  // (host, index of the pair in the report)
  TimePoint deadline_{};
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_PAIR_MEASUREMENTS_H_
