#include "configs/message_text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

namespace hvd {
namespace {

constexpr size_t kMaxWord = 64;  // longer words are no misspelling of anything

}  // namespace

std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

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

std::string_view TypographicSignIn(std::string_view text) {
  struct Sign {
    std::string_view bytes, name;
  };
  constexpr Sign kSigns[] = {
      {"\xc2\xa0", "a no-break space (U+00A0)"},
      {"\xe2\x80\xaf", "a narrow no-break space (U+202F)"},
      {"\xe2\x80\x8b", "a zero-width space (U+200B)"},
      {"\xe3\x80\x80", "an ideographic space (U+3000)"},
      {"\xe2\x80\x90", "a hyphen that is no minus sign (U+2010)"},
      {"\xe2\x80\x91", "a no-break hyphen (U+2011)"},
      {"\xe2\x80\x93", "an en dash (U+2013)"},
      {"\xe2\x80\x94", "an em dash (U+2014)"},
      {"\xe2\x88\x92", "a mathematical minus sign (U+2212)"},
      {"\xe2\x80\x98", "a typographic quote (U+2018)"},
      {"\xe2\x80\x99", "a typographic quote (U+2019)"},
      {"\xe2\x80\x9c", "a typographic quote (U+201C)"},
      {"\xe2\x80\x9d", "a typographic quote (U+201D)"},
  };
  size_t first = std::string_view::npos;
  std::string_view name;
  for (const Sign& sign : kSigns) {
    const size_t at = text.find(sign.bytes);
    if (at >= first) continue;
    first = at;
    name = sign.name;
  }
  return name;
}

}  // namespace hvd
