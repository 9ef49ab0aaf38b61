#include "discovery/name_pattern.h"

#include "discovery/words.h"

namespace hvd {

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string_view::npos;  // the last one, which matched the name up to `taken`
  size_t taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || Lower(pattern[p]) == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool MatchesPatterns(std::span<const std::string_view> patterns, std::string_view name) {
  bool matches = false;
  for (std::string_view pattern : patterns) {
    const bool negated = pattern.starts_with('!');
    if (negated) pattern.remove_prefix(1);
    if (pattern.empty() || !MatchesPattern(pattern, name)) continue;
    if (negated) return false;
    matches = true;
  }
  return matches;
}

}  // namespace hvd
