#include "launcher/channels/late_host.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <string>

namespace hvd {
namespace {

constexpr size_t kLongestName = 253, kLongestLabel = 63;
constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::seconds(5);
constexpr int kDoublings = 3, kMostTenths = 30;

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

std::string_view NoAnswerText(int error) {
  switch (error) {
    case ECONNREFUSED: return "the connection was refused";
    case ETIMEDOUT: return "no answer came";
    case EHOSTDOWN:
    case EHOSTUNREACH: return "there is no route to it";
    case ENETDOWN:
    case ENETUNREACH: return "its network is unreachable";
    case ECONNABORTED:
    case ECONNRESET: return "it closed the connection before it said who it is";
    default: return "";
  }
}

bool MayRetry(const ChannelEnd& end, bool servers_come_late) {
  return end.may_pass || (servers_come_late && !end.no_answer.empty());
}

Duration PauseBeforeRetry(int tries) {
  const Duration doubled = kFirstPause * (1 << std::clamp(tries - 1, 0, kDoublings));
  const int tenths = std::clamp(tries - 1 - kDoublings, 0, kMostTenths);
  const std::chrono::duration<double> grown = doubled * std::pow(1.1, tenths);
  return std::min(std::chrono::duration_cast<Duration>(grown), kLongestPause);
}

}  // namespace hvd
