#include "launcher/channels/unresolved_name.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace hvd {
namespace {

constexpr size_t kLongestName = 253, kLongestLabel = 63;
constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr int kMostDoublings = 3;

bool AllDigits(std::string_view label) {
  return std::all_of(label.begin(), label.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

}  // namespace

bool MayResolveLater(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > kLongestName) return false;
  if (name.find_first_of(": \t\r\n") != std::string_view::npos) return false;
  std::string_view label;
  while (true) {
    const size_t dot = std::min(name.find('.'), name.size());
    label = name.substr(0, dot);
    if (label.empty() || label.size() > kLongestLabel) return false;
    if (dot == name.size()) break;
    name.remove_prefix(dot + 1);
  }
  return !AllDigits(label) && Lowered(label) != "invalid";
}

Duration PauseBeforeResolving(int tries) {
  return kFirstPause * (1 << std::clamp(tries - 1, 0, kMostDoublings));
}

}  // namespace hvd
