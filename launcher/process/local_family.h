// LocalFamily: the children of this process that several of its parts wait for. Whichever part
// reaps, each learns of its own child. Main thread only.
#ifndef HVD_LAUNCHER_PROCESS_LOCAL_FAMILY_H_
#define HVD_LAUNCHER_PROCESS_LOCAL_FAMILY_H_

#include <sys/types.h>

#include <map>
#include <optional>

#include "launcher/process/process_tree.h"

namespace hvd {

// A variable of the agents that a driver has started on its own machine.
inline constexpr const char* kLocalAgentName = "HVD_LOCAL_AGENT";

// Made before the first child: those that are there already were inherited through exec, and are
// nobody's business.
class LocalFamily {
 public:
  void Add(pid_t child) { statuses_[child] = std::nullopt; }
  // Nobody asks for the child any more.
  void Remove(pid_t child) { statuses_.erase(child); }
  void NoteReaped(pid_t pid, int wait_status);
  // Reaps what has ended; true when no child is left.
  bool Reap();
  // Nothing while it runs.
  std::optional<int> StatusOf(pid_t child) const;
  // The processes to be spared by a part that ends this child, and all that it left.
  Spared NotOf(pid_t child) const;

 private:
  const bool inherited_children_ = HasChildren();
  std::map<pid_t, std::optional<int>> statuses_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_LOCAL_FAMILY_H_
