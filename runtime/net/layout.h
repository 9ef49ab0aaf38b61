// The placement of the ranks of a world: the host and local rank of each, its short form for
// messages, and how to reach the hosts. Pure.
#ifndef HVD_RUNTIME_NET_LAYOUT_H_
#define HVD_RUNTIME_NET_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/net/fields.h"

namespace hvd {

struct RankPlace {
  uint32_t host = 0, local_rank = 0;
  bool operator==(const RankPlace&) const = default;
};

// `count` consecutive ranks on one host with consecutive local ranks; then as many, with the same
// local ranks, on the next host, for `hosts` hosts in all. So a job with equal hosts is one run,
// whatever its size.
struct RankRun {
  uint32_t host = 0, local_rank = 0, count = 0, hosts = 1;
  bool operator==(const RankRun&) const = default;
};
void Fields(auto& f, MaybeConst<RankRun> auto& run) {
  f(run.host, run.local_rank, run.count, run.hosts);
}

inline constexpr uint32_t kMaxRanks = 1'000'000;

// Both by world rank.
std::vector<RankRun> RunsOf(const std::vector<RankPlace>& places);
// kInvalidArgument unless these are `size` ranks, and hosts and the local ranks of each host are
// numbered from 0 without gaps.
Result<std::vector<RankPlace>> PlacesOf(const std::vector<RankRun>& runs, uint32_t size);

// Where a rank listens for peers on other hosts.
struct ListenHints {
  std::vector<std::string> addresses;      // numeric, the preferred one first; empty: any
  uint16_t first_port = 0, last_port = 0;  // both 0: any port
  bool operator==(const ListenHints&) const = default;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_NET_LAYOUT_H_
