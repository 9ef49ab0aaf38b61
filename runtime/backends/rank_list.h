// Formats ranks for messages.
#ifndef HVD_RUNTIME_BACKENDS_RANK_LIST_H_
#define HVD_RUNTIME_BACKENDS_RANK_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/text/comma_separated.h"
#include "runtime/base/text/format.h"

namespace hvd {

// "rank 3", "ranks 3, 4", the first few of many. `ranks`: the first of `count` ranks.
inline std::string RankList(std::span<const uint32_t> ranks, size_t count) {
  constexpr size_t kShown = 16;
  std::string text = count == 1 ? "rank " : "ranks ";
  const size_t shown = std::min(ranks.size(), kShown);
  text += CommaSeparated(ranks.first(shown));
  if (count > shown) text += Format(" and {} more", count - shown);
  return text;
}

inline std::string RankList(std::span<const uint32_t> ranks) {
  return RankList(ranks, ranks.size());
}

// The text for an operation that waits while these ranks are in the middle of something; empty for
// none.
inline std::string AwaitedParts(std::span<const uint32_t> ranks) {
  if (ranks.empty()) return "";
  return "for " + RankList(ranks) + " to finish " +
         (ranks.size() == 1 ? "its part" : "their parts");
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_RANK_LIST_H_
