// Coordinator: knows which hosts are ready for which operation, compares their details, and gives
// every host the same order of work. One per world, in the process of world rank 0.
//
// A pure state machine: messages in, messages out; the time is an argument. One thread at a time.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATOR_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/backends/hosts/coordination/coordination_messages.h"
#include "runtime/backends/hosts/coordination/host_map.h"
#include "runtime/base/clock.h"
#include "runtime/segment/tuned_settings.h"

namespace hvd {

// The detail that the leader of one host reported.
struct HostDetail {
  uint32_t rank = 0;
  std::string_view detail;
};

// Ok, or an error that says how these ranks disagree about the operation.
using CompareDetailsOf = std::function<Status(std::string_view name, std::span<const HostDetail>)>;

struct CoordinatorOptions {
  // Operations up to this size together travel as one. 0: none do.
  uint64_t fusion_bytes = 64 << 20;
  SumCut cut;
  Duration stall_warning = std::chrono::seconds(60);  // 0: never
  // After this time the leaders receive the ranks that they wait for. 0: never.
  Duration tell_awaited = std::chrono::seconds(30);
  // What counts more than the two above in a job that is tuned; null in others. Outlives this.
  const TunedSettings* tuned = nullptr;
};

class Coordinator {
 public:
  struct Answer {
    uint32_t to = 0;  // world rank
    Coordination msg;
  };
  using Answers = std::vector<Answer>;

  Coordinator(const HostMap& map, CompareDetailsOf compare, CoordinatorOptions options);

  // A message of world rank `from`. Refuses messages that only a coordinator sends.
  Status Receive(uint32_t from, Coordination msg, TimePoint now, Answers* answers);

  // Reports operations that some hosts have waited for too long, each once per interval. The
  // answers inform the leaders of those hosts.
  std::vector<std::string> Stalls(TimePoint now, Answers* answers);

  // The coordinator's own process leaves: fails all pending operations, and reports that to every
  // leader that has sent a message.
  void Close(const std::string& why, Answers* answers);

 private:
  struct Report {
    uint32_t host = 0, leader = 0;
    ReadyMessage msg;
  };
  // One operation from the first host that is ready to the last. Reports ascending by host.
  struct Entry {
    std::vector<uint32_t> ranks;  // of the set
    std::vector<Report> reports;
    TimePoint since, warned_at;
    std::vector<uint32_t> told;  // missing ranks, as last sent to the leaders
    Status failed;               // not ok: sent to its leaders, also to those still to come
  };
  // By domain, ranks of the set, name: the number of a set alone is not enough, because it is used
  // again.
  using Key = std::tuple<int32_t, std::vector<uint32_t>, std::string>;
  struct Ready {
    Entry entry;
    RunEntry run;
    uint64_t fusion_key = 0, bytes = 0;
  };
  // The operations of the same leaders. Operations of other leaders never wait for them here.
  struct Lane {
    std::deque<Ready> held;  // ready, but enough is under way
    uint32_t under_way = 0;  // batches
  };

  void OnReady(uint32_t from, ReadyMessage msg, TimePoint now, Answers* answers);
  void OnWithdraw(uint32_t from, const WithdrawMessage& msg, Answers* answers);
  void OnJoin(uint32_t from, const JoinMessage& msg, Answers* answers);
  void OnLeave(uint32_t from, uint32_t rank, Answers* answers);
  void FailHeld(uint32_t leader, Answers* answers);
  bool HasJoined(uint32_t rank) const;
  void SettleAll(Answers* answers);
  void OnDone(uint64_t number, Answers* answers);

  std::vector<uint32_t> RanksOf(const ReadyMessage& msg) const;
  std::vector<uint32_t> MissingRanks(const Entry& entry) const;
  void ReportAwaited(Entry& entry, TimePoint now, Answers* answers);
  void SettleIfComplete(std::map<Key, std::list<Entry>>::iterator at,
                        std::list<Entry>::iterator entry, Answers* answers);
  Status VerdictOf(const Entry& entry, const std::string& name) const;
  Status JoinedVerdict(const Entry& entry, const std::string& name) const;
  void Fail(const Entry& entry, const Status& status, Answers* answers);
  uint32_t ParticipantsIn(const Entry& entry) const;
  Ready MakeReady(Entry entry) const;
  std::vector<std::vector<int64_t>> ParticipantsOf(const Ready& ready) const;
  std::vector<std::vector<int64_t>> ExtentsFor(const Ready& ready, uint32_t host) const;
  uint64_t FusionBytes() const;
  void IssueHeld(Lane& lane, Answers* answers);
  void Issue(Lane& lane, std::span<const Ready> batch, Answers* answers);
  static bool AgreeAlike(const Entry& a, const Entry& b);
  static std::vector<std::string> NotesIn(const Entry& entry);
  void AddNotes(const Entry& entry, RunMessage* msg);
  std::vector<uint64_t> TakeTurns(const Entry& entry, const Report& report);

  const HostMap map_;
  const CompareDetailsOf compare_;
  const CoordinatorOptions options_;
  std::map<Key, std::list<Entry>> waiting_;      // rounds of one name: a fast host may be one ahead
  std::map<std::vector<uint32_t>, Lane> lanes_;  // by leaders
  std::map<uint64_t, Lane*> running_;            // by number of the batch
  uint64_t next_number_ = 1;
  std::map<uint32_t, uint64_t> turns_;                               // the last of each rank
  std::map<std::vector<uint32_t>, std::vector<std::string>> notes_;  // the last, by ranks of a set
  std::map<uint32_t, uint64_t> joined_;  // world rank -> ticket of its join
  std::set<uint32_t> joined_in_vain_;    // their join has failed
  std::set<uint32_t> left_;
  std::set<uint32_t> heard_of_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_COORDINATOR_H_
