// ReconnectPolicy: how long and how often a lost connection to a host is retried, and the messages
// for the user. Pure: the owner passes in the time and the jitter.
#ifndef HVD_LAUNCHER_DRIVER_AGENTS_RECONNECT_POLICY_H_
#define HVD_LAUNCHER_DRIVER_AGENTS_RECONNECT_POLICY_H_

#include <string>

#include "runtime/base/clock.h"

namespace hvd {

class ReconnectPolicy {
 public:
  // Limit of one attempt, until the agent has answered.
  static constexpr Duration kTryLimit = std::chrono::seconds(10);

  // `reason`: why the connection was lost, one sentence without the host's name. The first attempt
  // is due at once.
  ReconnectPolicy(std::string reason, Duration grace, TimePoint now);

  const std::string& reason() const { return reason_; }
  Duration lasted(TimePoint now) const { return now - since_; }
  bool over(TimePoint now) const { return now >= end_; }

  bool trying() const { return trying_; }
  void OnTry(TimePoint now);
  // After 0.5 s, 1, 2, 4 and then every 5 s, each up to a quarter more or less; `chance` is from 0
  // to 1.
  void OnFailure(const std::string& reason, TimePoint now, double chance);

  // While trying: the deadline of this attempt. Otherwise: when the next one is due. Never after
  // the end.
  TimePoint due() const;

  // Why the host is lost in the end: the first reason comes first.
  std::string LostReason() const;

 private:
  std::string reason_, last_failure_;
  Duration grace_;
  TimePoint since_, end_, due_;
  bool trying_ = false;
  int failures_ = 0;
};

// The sentence for the user. `reason` as above.
std::string AwayText(const std::string& host, const std::string& reason, Duration grace);
std::string BackText(const std::string& host, Duration away);
// Of a host that is away when its agent is given up: the agent waits for `grace` at most, which may
// have begun later there.
std::string UnreachedText(const std::string& host, Duration grace);
// Of a host that is lost and could not be cleared.
std::string UnclearedText(const std::string& host, const std::string& reason);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_AGENTS_RECONNECT_POLICY_H_
