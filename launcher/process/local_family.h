// LocalFamily: the child processes of this process, shared by the parts that wait for them:
// whichever part reaps a child, its owner learns of it. Main thread only.
#ifndef HVD_LAUNCHER_PROCESS_LOCAL_FAMILY_H_
#define HVD_LAUNCHER_PROCESS_LOCAL_FAMILY_H_

#include <sys/types.h>

#include <map>
#include <optional>

#include "launcher/process/process_tree.h"

namespace hvd {

// Environment variable of agents that a driver started on its own machine.
inline constexpr const char* kLocalAgentName = "HVD_LOCAL_AGENT";

// Create before the first child: existing children were inherited through exec and are ignored.
class LocalFamily {
 public:
  void Add(pid_t child) { statuses_[child] = std::nullopt; }
  // The child's owner is no longer interested.
  void Remove(pid_t child) { statuses_.erase(child); }
  void NoteReaped(pid_t pid, int wait_status);
  // Reaps ended children; true if no child is left.
  bool Reap();
  // Nothing while it runs.
  std::optional<int> StatusOf(pid_t child) const;
  // The processes to spare when killing this child and its leftovers.
  Spared NotOf(pid_t child) const;

 private:
  const bool inherited_children_ = HasChildren();
  std::map<pid_t, std::optional<int>> statuses_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_LOCAL_FAMILY_H_
