// The state of a job beside JobState: which hosts and ranks it has, and which it may have. In a job
// of fixed size these never change. A plain value; membership.h decides by it.
#ifndef HVD_LAUNCHER_JOB_STATE_ELASTIC_STATE_H_
#define HVD_LAUNCHER_JOB_STATE_ELASTIC_STATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "discovery/host_slots.h"
#include "launcher/job/policy/failure_budget.h"
#include "launcher/job/policy/failure_kind.h"
#include "launcher/job/policy/goodput.h"
#include "launcher/job/policy/host_ledger.h"
#include "launcher/job/policy/job_policy.h"
#include "launcher/job/policy/rank_order.h"
#include "launcher/wire/plan.h"
#include "runtime/base/clock.h"

namespace hvd {

// A host that was listed. One that is lost or leaves the list and comes back is a new host, with a
// new number and a new agent.
struct ElasticHost {
  HostSlots listing;         // as its source named it last
  uint32_t slots = 0;        // that it has; 0: its agent has not told yet
  bool listed = true;        // the source still names it
  bool ready = false;        // its agent waits for work
  bool gone = false;         // its agent is gone, or about to go
  std::string trouble;       // why it could not be used
  std::set<uint32_t> taken;  // seats of workers that have not ended

  bool usable() const { return listed && ready && !gone; }
  bool HasFree(uint32_t seat) const { return seat < slots && !taken.contains(seat); }
  size_t CountFree() const {
    const auto has_slot = [this](uint32_t seat) { return seat < slots; };
    const auto workers = static_cast<size_t>(std::ranges::count_if(taken, has_slot));
    return usable() ? slots - workers : 0;
  }
};

// How far the ranks of the running generation are with a change that they are to act on.
enum class CommitNotice { kNone, kHolding, kActing };

// All workers are being started again together.
struct Restart {
  TimePoint kill_at;  // when those that outlive SIGTERM get SIGKILL
  bool killing = false;
};

struct ElasticState {
  ElasticState(const JobPolicy& the_policy, uint64_t seed)
      : policy(the_policy), ledger(policy.cooldown, seed), budget(policy.failures) {}

  JobPolicy policy;
  HostLedger ledger;
  FailureBudget budget;
  FailureKinds failure_kinds;
  bool any_committed = false;  // some rank has passed a commit: the script is known to work
  bool listed_once = false;
  std::vector<HostSlots> listing;  // the last good answer of the source
  std::string source_trouble;      // why the source had no answer lately; empty: it had one
  std::vector<ElasticHost> hosts;  // by number
  // Kept up to date by CountHosts, TakeSeat and FreeSeat.
  struct HostCounts {
    size_t free_seats = 0;            // of usable hosts, even if they rest after a failure
    size_t unlisted = 0;              // hosts that are listed no longer, and not gone
    std::vector<HostSlots> unopened;  // listed, and not among the hosts, or gone
    bool operator==(const HostCounts&) const = default;
  } host_counts;
  Generation generation;      // the last one that began
  bool running = false;       // it is not broken, and no rank has left it
  bool broken = false;        // it was: a rank of it was lost, or ended it
  bool any_joined = false;    // since the workers were started, or started again
  bool any_finished = false;  // a rank ended with 0: nobody is added or replaced any more
  Goodput time;
  uint32_t resets = 0;  // generations after the first one
  std::optional<Restart> restart;
  uint32_t restarts = 0;
  bool restarted = false;  // and no generation has begun since
  // Since when the workers are missing slots, or there are slots for more; of a script without
  // generations. When it is to be looked at again.
  std::optional<TimePoint> resize_since, resize_at;
  TimePoint started_at{};  // when workers were started last
  // Since when a worker is missing that went before any rank had called hvd.init().
  std::optional<TimePoint> incomplete_since;
  uint64_t failed_generation = UINT64_MAX;  // the one that the last failure was counted for

  CommitNotice notice = CommitNotice::kNone;
  uint64_t notice_generation = 0;  // whose ranks are told
  uint32_t update = 0;             // bits of CommitUpdate that the ranks are told
  std::set<uint32_t> holding;      // hosts that have not answered HoldCommits
  uint64_t most_commits = 0;
  int stop_signal = 0;  // that asked it to stop, with `stop_asked`
  bool stop_asked = false;
  Duration stop_grace{};

  // Ranks were asked to stop, so that they may leave with kStoppedExitCode. Those that decide by
  // themselves know at a commit.
  bool stopping() const {
    return stop_asked && (policy.stops_at_commit || notice == CommitNotice::kActing);
  }

  // All workers are restarted together when one is lost.
  bool RestartsInJob() const {
    return policy.restart == RestartMode::kInJob ||
           (policy.restart == RestartMode::kAuto && !any_joined);
  }

  // Its host is listed with the slot.
  bool HasSlot(const Placement& place) const {
    return hosts[place.host].listed && place.local_rank < hosts[place.host].slots;
  }
  // Nothing in a job of fixed size, which has no list of hosts.
  void TakeSeat(uint32_t host, uint32_t seat);
  void FreeSeat(uint32_t host, uint32_t seat);
  // The hosts that are not gone: by name and port.
  std::map<std::pair<std::string, uint16_t>, uint32_t> LiveHosts() const;
  // To be called when hosts, or their list, have changed.
  void CountHosts();

  // hvdrun and its workers were stopped for this long, which counts towards no limit.
  void Shift(Duration away);

  std::optional<TimePoint> ledger_changes_at;  // when a host or a slot may be used again
  std::optional<TimePoint> stop_by;            // until then ranks that were asked to stop may run
  std::optional<TimePoint> enough_since;  // enough slots to start, but hosts are still on their way
  std::optional<TimePoint> growth_at;  // until then a rank that joined waits for others that start
  std::optional<TimePoint> next_overdue;  // when a worker that does not end gets SIGKILL
  std::optional<TimePoint> short_since;   // slots are missing for a generation
  std::optional<TimePoint> late_since;    // none is, and ranks wait for others in hvd.init()
  std::string last_text;                  // what the log last said about who is there
  std::string lost_cause;   // of the first rank that failed since the last generation began
  TimePoint next_report{};  // about that
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_STATE_ELASTIC_STATE_H_
