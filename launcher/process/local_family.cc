#include "launcher/process/local_family.h"

#include <utility>
#include <vector>

namespace hvd {

void LocalFamily::NoteReaped(pid_t pid, int wait_status) {
  auto known = statuses_.find(pid);
  if (known != statuses_.end()) known->second = wait_status;
}

bool LocalFamily::Reap() {
  return ReapAndCheckNoChildren([this](pid_t pid, int status) { NoteReaped(pid, status); });
}

std::optional<int> LocalFamily::StatusOf(pid_t child) const {
  auto known = statuses_.find(child);
  return known == statuses_.end() ? std::nullopt : known->second;
}

Spared LocalFamily::NotOf(pid_t child) const {
  Spared spared;
  std::vector<pid_t> running;
  for (const auto& [pid, status] : statuses_) {
    if (status) continue;
    running.push_back(pid);
    if (pid != child) spared.trees.push_back(pid);
  }
  if (inherited_children_) spared.own = std::move(running);
  return spared;
}

}  // namespace hvd
