// HostLedger: which hosts and slots failed, how often, and from when on they may be used again.
// After a failed worker its slot has a short cooldown. A host has one only when its agent is lost
// or cannot be reached, or when the user gave a cooldown range. Every cooldown ends. Pure; one
// thread.
#ifndef HVD_LAUNCHER_JOB_POLICY_HOST_LEDGER_H_
#define HVD_LAUNCHER_JOB_POLICY_HOST_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "launcher/job/policy/cooldown.h"
#include "runtime/base/clock.h"

namespace hvd {

class HostLedger {
 public:
  // `range`: the cooldown of hosts (--blacklist-cooldown-range); not said: from 1 s on, doubled
  // with each failure up to 60 s. `seed`: of the random part of the times.
  explicit HostLedger(std::optional<CooldownRange> range = std::nullopt, uint64_t seed = 0);

  // The agent was lost, or the host could not be reached.
  void NoteHostFailure(const std::string& host, TimePoint now);
  // Only the slot rests. It may be used again at once the first time, then after 1 s, 2 s, 4 s
  // and so on up to 60 s. `slot`: the worker's number on its host.
  void NoteSlotFailure(const std::string& host, uint32_t slot, TimePoint now);
  // A worker failed by itself. With a range the whole host rests, as in horovodrun; workers that
  // fail while it does are the same failure.
  void NoteWorkerFailure(const std::string& host, uint32_t slot, TimePoint now);
  // A worker succeeded there: the next failure of this slot or host counts as its first. A cooldown
  // in progress goes on.
  void NoteGood(const std::string& host, uint32_t slot, TimePoint now);

  // The job was stopped for this long: cooldowns end that much later.
  void Shift(Duration away);

  bool MayUse(const std::string& host, TimePoint now) const;
  // False also while the host may not be used.
  bool MayUse(const std::string& host, uint32_t slot, TimePoint now) const;
  // From when on the host may be used; TimePoint(): it has no cooldown.
  TimePoint UsableFrom(const std::string& host) const;
  // When the next cooldown of a host or slot ends; nothing if there is none.
  std::optional<TimePoint> NextChange(TimePoint now) const;

  // All that changes, for the record of a takeover (takeover/job_record.h), but for what GoOn makes
  // of it.
  static void RecordFields(auto& f, auto& m) { f(m.draws_, m.hosts_, m.slots_); }
  // In another process, with the same seed: random times go on behind those that were drawn.
  void GoOn() { random_.discard(draws_); }

 private:
  struct Place {
    uint32_t failures = 0;
    TimePoint usable_from{};
    static void RecordFields(auto& f, auto& m) { f(m.failures, m.usable_from); }
  };
  using SlotKey = std::pair<std::string, uint32_t>;

  double Jitter();

  bool workers_cost_hosts_;
  CooldownRange range_;
  std::mt19937_64 random_;
  uint64_t draws_ = 0;  // from it
  std::map<std::string, Place> hosts_;
  std::map<SlotKey, Place> slots_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_POLICY_HOST_LEDGER_H_
