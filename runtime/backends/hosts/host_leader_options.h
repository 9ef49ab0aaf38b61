// Options of a HostLeaderService and its parts.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_OPTIONS_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/backends/hosts/coordination/coordinator.h"
#include "runtime/backends/hosts/coordination/host_map.h"
#include "runtime/base/clock.h"
#include "runtime/base/idle_limit.h"

namespace hvd {

// Logs the reason and aborts the process.
void EndProcess(const std::string& why);

struct HostLeaderOptions {
  HostMap map;
  // How long no byte may move between leaders. For an InterHostComm that does not notice lost
  // peers; others wait as long as the ranks do: until the world breaks, or a stall exceeds the
  // user's limit.
  Duration idle_limit = kNoLimit;
  // How long the launcher may take to report why a connection broke. Then the connection's own
  // error is the cause.
  Duration cause_grace = std::chrono::seconds(2);
  // How long a leaving rank waits for the coordinator's answer.
  Duration goodbye = std::chrono::seconds(5);
  // How long the leader waits for a rank of its host that is in the middle of a chunk of a failed
  // operation. Then it reports the failure and never reuses the memory of that sum.
  Duration chunk_limit = std::chrono::seconds(2);
  // How long a caller that takes its memory back lets work with other hosts continue to use it,
  // since they count on it. Then all of that work is aborted.
  Duration last_exchange = std::chrono::seconds(2);
  // How long the work with other hosts may keep a caller's memory after the abort. Then the caller
  // cannot get its memory back and must not continue: the service calls `end_process` with the
  // reason, which does not return.
  Duration let_go_limit = std::chrono::seconds(10);
  std::function<void(const std::string& why)> end_process = EndProcess;
  // A thread that attends counts as gone after this time without a call, or four times as long
  // during a sum. It calls every few microseconds, during a sum after half of this; between two of
  // its waits other hosts may have to wait this long.
  Duration attendance_timeout = std::chrono::microseconds(250);
  CompareDetailsOf compare;
  CoordinatorOptions coordinator;
  // Wakes every sleeping rank on this host. From any thread.
  std::function<void()> wake_host;
  // Why the world of this host is broken, once it is.
  std::function<std::optional<std::string>()> broken;
  // Whether this world rank, on this host, has left.
  std::function<bool(uint32_t rank)> has_left = [](uint32_t) { return false; };
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_HOST_LEADER_OPTIONS_H_
