// Which PyTorch the command of the workers would import.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_TORCH_VERSION_H_
#define HVD_LAUNCHER_AGENT_WORKERS_TORCH_VERSION_H_

#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/environment/torch_recorder.h"

namespace hvd {

// Nothing where it is no Python, nor a script of one, or has no PyTorch, or has several: a wrapper
// (uv run, a container) may lead to another file system. Starts nothing.
std::optional<TorchVersion> FindTorch(const std::vector<std::string>& argv, const std::string& path,
                                      const std::string& directory);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_TORCH_VERSION_H_
