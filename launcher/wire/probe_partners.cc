#include "launcher/wire/probe_partners.h"

#include <algorithm>

namespace hvd {

std::vector<uint32_t> ProbePartners(uint32_t host, uint32_t hosts) {
  std::vector<uint32_t> partners;
  if (hosts <= kMostProvenInPairs) {
    for (uint32_t other = 0; other < hosts; ++other) {
      if (other != host) partners.push_back(other);
    }
    return partners;
  }
  for (uint32_t step = 1; step <= hosts / 2; step *= 2) {
    partners.push_back((host + step) % hosts);
    partners.push_back((host + hosts - step) % hosts);
  }
  std::sort(partners.begin(), partners.end());
  partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
  return partners;
}

}  // namespace hvd
