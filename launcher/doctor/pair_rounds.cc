#include "launcher/doctor/pair_rounds.h"

#include <algorithm>
#include <set>

#include "launcher/wire/probe_partners.h"

namespace hvd {

std::vector<HostPair> PairsOf(uint32_t hosts) {
  std::vector<HostPair> pairs;
  for (uint32_t host = 0; host < hosts; ++host) {
    for (uint32_t other : ProbePartners(host, hosts)) {
      if (host < other) pairs.emplace_back(host, other);
    }
  }
  // By distance around the circle: pairs of one distance fill few rounds.
  std::stable_sort(pairs.begin(), pairs.end(), [hosts](const HostPair& x, const HostPair& y) {
    auto distance = [hosts](const HostPair& pair) {
      return std::min(pair.second - pair.first, hosts - (pair.second - pair.first));
    };
    return distance(x) < distance(y);
  });
  return pairs;
}

std::vector<std::vector<HostPair>> RoundsOf(const std::vector<HostPair>& pairs) {
  std::vector<std::vector<HostPair>> rounds;
  std::vector<std::set<uint32_t>> busy;
  for (const HostPair& pair : pairs) {
    size_t round = 0;
    while (round < rounds.size() &&
           (busy[round].contains(pair.first) || busy[round].contains(pair.second))) {
      ++round;
    }
    if (round == rounds.size()) {
      rounds.emplace_back();
      busy.emplace_back();
    }
    rounds[round].push_back(pair);
    busy[round].insert({pair.first, pair.second});
  }
  return rounds;
}

}  // namespace hvd
