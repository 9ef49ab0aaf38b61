// The rights of a message between hosts, by the way on which it came: which kinds the tree of
// agents carries, which ranks a host may speak of, and how long an entry of the directory is. Each
// host proves only that it belongs to the job; it speaks for itself and, in the tree, for the hosts
// below it, and for no other.
//
// Pure. Every refusal is a sentence about "its agent", to follow the name of a host.
#ifndef HVD_LAUNCHER_WIRE_MESSAGE_RIGHTS_H_
#define HVD_LAUNCHER_WIRE_MESSAGE_RIGHTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"
#include "runtime/base/status.h"
#include "runtime/net/layout.h"

namespace hvd {

// Hosts root..end-1, by their numbers in the tree.
struct TreeBlock {
  uint32_t root = 0, end = 0;
  bool Has(uint32_t host) const { return root <= host && host < end; }
  bool operator==(const TreeBlock&) const = default;
};

// The number of each rank's host. As small as the layout in runs, however many ranks there are:
// every agent has one.
class HostOfRank {
 public:
  HostOfRank() = default;
  // `layout`: the runs of a world of `size` ranks.
  HostOfRank(const std::vector<RankRun>& layout, uint32_t size);

  uint32_t size() const { return size_; }
  // Of a rank below size().
  uint32_t operator[](uint32_t rank) const;

 private:
  struct Run {
    uint32_t first_rank = 0, host = 0, ranks_per_host = 1;
  };
  std::vector<Run> runs_;  // by rank
  uint32_t size_ = 0;
};
// Empty when these are not the runs of a world.
HostOfRank HostsOf(const std::vector<RankRun>& layout, uint32_t size);

// The worker that a message is about, by its number; nothing for other messages.
std::optional<uint32_t> WorkerIn(const ToDriver& message);

// Whether the message goes up the tree while all is well. The rest, and everything that ends
// something, goes straight.
bool GoesByTree(const ToDriver& message);
// Whether the message goes down the tree, from the driver or from an agent that lost its way up.
bool GoesByTree(const ToAgent& message);

// Is a message that speaks for `hosts` about their ranks alone, and no longer than it may be?
// kInvalidArgument if not. Costs no more than the message or the world is long.
Status CheckSpeaker(const ToDriver& message, TreeBlock hosts, const HostOfRank& host_of_rank);
// The same for an entry of the directory, which may be any rank's.
Status CheckEntry(const KeyValue& entry);
// Does the host have this worker? `workers`: all of the job, by their numbers. kInvalidArgument if
// not.
Status CheckWorker(uint32_t worker, uint32_t host, const std::vector<Placement>& workers);
// So many keys may these hosts bring into the directory of a generation: more than they ever have
// use for, and a bound for what a broken one costs. The keys that agents let pass add up to no more
// than the next one lets pass.
uint64_t MostKeys(TreeBlock hosts, const HostOfRank& host_of_rank);

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_MESSAGE_RIGHTS_H_
