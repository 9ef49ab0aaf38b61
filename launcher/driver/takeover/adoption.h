// Adoption: what a driver that takes over collects from the agents before it continues the job: a
// snapshot of each host that has a rank, and later messages. Pure.
#ifndef HVD_LAUNCHER_DRIVER_TAKEOVER_ADOPTION_H_
#define HVD_LAUNCHER_DRIVER_TAKEOVER_ADOPTION_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/driver/takeover/takeover_record.h"
#include "launcher/wire/messages.h"

namespace hvd {

class Adoption {
 public:
  explicit Adoption(const TakeoverRecord& record);

  bool complete() const { return awaited_.empty(); }
  void Add(uint32_t host, HostSnapshot snapshot);
  // Keeps a message for later; drops one that precedes the host's snapshot, which includes it.
  void Keep(uint32_t host, ToDriver message);
  // The host was not reached in time, or its agent is gone.
  void Lose(uint32_t host, std::string reason);

  const std::vector<std::optional<HostSnapshot>>& snapshots() const { return snapshots_; }
  std::vector<std::pair<uint32_t, ToDriver>> PopMessages() { return std::move(later_); }
  const std::vector<std::pair<uint32_t, std::string>>& lost() const { return lost_; }

 private:
  std::set<uint32_t> awaited_;
  std::vector<std::optional<HostSnapshot>> snapshots_;
  std::vector<std::pair<uint32_t, ToDriver>> later_;
  std::vector<std::pair<uint32_t, std::string>> lost_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_TAKEOVER_ADOPTION_H_
