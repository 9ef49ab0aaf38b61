#include "configs/message_text.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace hvd {
namespace {

constexpr size_t kMaxWord = 64;  // longer words are no misspelling of anything

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      int replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::string_view NearestOf(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.size() > kMaxWord) return {};
  std::string_view nearest;
  int best = 1 << 20;
  for (std::string_view candidate : candidates) {
    int distance = EditDistance(word, candidate);
    int allowed = static_cast<int>(candidate.size()) / 3;
    if (distance <= allowed && distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace hvd
