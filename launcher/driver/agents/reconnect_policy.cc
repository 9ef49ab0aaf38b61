#include "launcher/driver/agents/reconnect_policy.h"

#include <algorithm>
#include <utility>

#include "launcher/output/text/phrases.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;

constexpr Duration kFirstPause = milliseconds(500);
constexpr Duration kLongestPause = std::chrono::seconds(5);
constexpr int kMostDoublings = 4;
constexpr double kJitter = 0.25;

// Long times in whole seconds.
std::string RoundedText(Duration duration) {
  auto unit = duration < std::chrono::seconds(10) ? milliseconds(100) : milliseconds(1000);
  return SecondsText(duration / unit * unit);
}

}  // namespace

ReconnectPolicy::ReconnectPolicy(std::string reason, Duration grace, TimePoint now)
    : reason_(std::move(reason)), grace_(grace), since_(now), end_(now + grace), due_(now) {}

void ReconnectPolicy::OnTry(TimePoint now) {
  trying_ = true;
  due_ = now + kTryLimit;
}

void ReconnectPolicy::OnFailure(const std::string& reason, TimePoint now, double chance) {
  trying_ = false;
  if (!reason.empty()) last_failure_ = reason;
  Duration pause =
      std::min(kFirstPause * (1 << std::min(failures_++, kMostDoublings)), Duration(kLongestPause));
  due_ = now + std::chrono::duration_cast<Duration>(pause * (1 + kJitter * (2 * chance - 1)));
}

TimePoint ReconnectPolicy::due() const { return std::min(due_, end_); }

std::string ReconnectPolicy::LostReason() const {
  std::string text = reason_ + "; it could not be reached again within " + SecondsText(grace_);
  if (!last_failure_.empty() && last_failure_ != reason_) text += " (" + last_failure_ + ")";
  return text;
}

std::string AwayText(const std::string& host, const std::string& reason, Duration grace) {
  return "the connection to host " + host + " was lost (" + reason + "); trying again for " +
         SecondsText(grace);
}

std::string BackText(const std::string& host, Duration away) {
  return "host " + host + " is back after " + RoundedText(away);
}

std::string UnreachedText(const std::string& host, Duration grace) {
  return "host " + host +
         " could not be told to end, since the connection to it is lost; its agent ends by itself "
         "within " +
         SecondsText(grace);
}

std::string UnclearedText(const std::string& host, const std::string& reason) {
  return "what is left of the job on host " + host + " could not be ended from here (" + reason +
         "); its agent ends it as soon as it notices, unless somebody has stopped the agent";
}

}  // namespace hvd
