#include "runtime/backends/hosts/awaited.h"

#include <algorithm>
#include <vector>

namespace hvd {
namespace {

constexpr size_t kRanksShown = 16;

std::string ListOf(std::span<const uint32_t> ranks, size_t count) {
  std::string text = count == 1 ? "rank " : "ranks ";
  const size_t shown = std::min(ranks.size(), kRanksShown);
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (count > shown) text += " and " + std::to_string(count - shown) + " more";
  return text;
}

}  // namespace

std::string RankList(std::span<const uint32_t> ranks) { return ListOf(ranks, ranks.size()); }

void Awaited::Write(std::span<const uint32_t> ranks, bool crossing) {
  for (size_t i = 0; i < std::min<size_t>(ranks.size(), kKept); ++i) {
    ranks_[i].store(ranks[i], std::memory_order_relaxed);
  }
  crossing_.store(crossing ? 1 : 0, std::memory_order_relaxed);
  count_.store(static_cast<uint32_t>(ranks.size()), std::memory_order_release);
}

std::string Awaited::Text() const {
  const uint32_t count = count_.load(std::memory_order_acquire);
  if (count == 0) return "for rank 0, which arranges the work of all hosts, to say who is missing";
  std::vector<uint32_t> ranks(std::min(count, kKept));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = ranks_[i].load(std::memory_order_relaxed);
  const bool crossing = crossing_.load(std::memory_order_relaxed) != 0;
  const std::string hosts = "the host of " + ListOf(ranks, count);
  return crossing ? "for its data to cross to " + hosts : "for " + hosts + " to be ready";
}

}  // namespace hvd
