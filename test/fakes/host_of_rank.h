// Worlds for tests of the tree of agents: which host each rank is on, written out by rank.
#ifndef HVD_TEST_FAKES_HOST_OF_RANK_H_
#define HVD_TEST_FAKES_HOST_OF_RANK_H_

#include <map>
#include <vector>

#include "launcher/wire/message_rights.h"

namespace hvd {

inline HostOfRank ByRank(const std::vector<uint32_t>& hosts) {
  std::map<uint32_t, uint32_t> ranks_on;
  std::vector<RankPlace> places;
  for (uint32_t host : hosts) places.push_back({host, ranks_on[host]++});
  return HostOfRank(RunsOf(places), static_cast<uint32_t>(places.size()));
}

}  // namespace hvd

#endif  // HVD_TEST_FAKES_HOST_OF_RANK_H_
