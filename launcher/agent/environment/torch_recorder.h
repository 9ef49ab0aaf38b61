// The variables that enable PyTorch's flight recorder and its dump pipe, by version. Pure.
#ifndef HVD_LAUNCHER_AGENT_ENVIRONMENT_TORCH_RECORDER_H_
#define HVD_LAUNCHER_AGENT_ENVIRONMENT_TORCH_RECORDER_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct TorchVersion {
  uint32_t major = 0, minor = 0;
  auto operator<=>(const TorchVersion&) const = default;
};

// From the text of torch/version.py.
std::optional<TorchVersion> ParseTorchVersion(std::string_view text);

struct RecorderVariable {
  const char* name;
  std::string value;
  // Its name in other versions; not set if the user has set that.
  const char* also;
};
// `stem`: prefix of the names of the worker's pipe and dump. None before 2.5, whose dumps have
// another format.
std::vector<RecorderVariable> RecorderVariables(TorchVersion version, const std::string& stem);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_ENVIRONMENT_TORCH_RECORDER_H_
