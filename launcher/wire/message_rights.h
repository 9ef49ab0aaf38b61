// Checks what a host may send, depending on the route: which messages the tree of agents carries,
// which ranks a host may name, and the maximum length of directory entries. Authentication only
// proves that a host belongs to the job; it may send for itself and, in the tree, for the hosts
// below it.
//
// Pure. Every error is a sentence about "its agent", to follow the name of a host.
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

// Maps ranks to host numbers. Stored as runs, independent of the number of ranks, since every agent
// has one.
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
// Empty if these are not the runs of a world.
HostOfRank HostsOf(const std::vector<RankRun>& layout, uint32_t size);

// The number of the worker that a message is about, if any.
std::optional<uint32_t> WorkerIn(const ToDriver& message);

// Whether the message normally goes up the tree. Others, and everything that ends something, go
// directly to the driver.
bool GoesByTree(const ToDriver& message);
// Whether the message goes down the tree, from the driver or from an agent that lost its parent.
bool GoesByTree(const ToAgent& message);

// Checks that a message sent for `hosts` names only their ranks and is not too long.
// kInvalidArgument if not. Linear in the size of the message or the world.
Status CheckSpeaker(const ToDriver& message, TreeBlock hosts, const HostOfRank& host_of_rank);
// The same for an entry of the directory, which may be any rank's.
Status CheckEntry(const KeyValue& entry);
// Checks that the host has this worker. `workers`: all of the job, by number. kInvalidArgument if
// not.
Status CheckWorker(uint32_t worker, uint32_t host, const std::vector<Placement>& workers);
// The same for each item of a message: all have a field `worker`.
template <typename Items>
Status CheckWorkers(const Items& items, uint32_t host, const std::vector<Placement>& workers) {
  for (const auto& item : items) HVD_RETURN_IF_ERROR(CheckWorker(item.worker, host, workers));
  return Status::Ok();
}
// Maximum number of keys that these hosts may add to the directory of a generation: more than they
// need, but it bounds the cost of a faulty host. The limits of children add up to at most their
// parent's.
uint64_t MostKeys(TreeBlock hosts, const HostOfRank& host_of_rank);

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_MESSAGE_RIGHTS_H_
