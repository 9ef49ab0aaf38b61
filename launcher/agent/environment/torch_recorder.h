// The variables by which PyTorch's flight recorder records and can be asked from outside, as far as
// a version of it has them. Pure.
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

// By the text of torch/version.py.
std::optional<TorchVersion> ParseTorchVersion(std::string_view text);

struct RecorderVariable {
  const char* name;
  std::string value;
  // It has another name in other versions, and is left alone where the user has set that one.
  const char* also;
};
// `stem`: with what the names of the worker's pipe and dump begin. None before 2.5, whose dumps
// have another form.
std::vector<RecorderVariable> RecorderVariables(TorchVersion version, const std::string& stem);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_ENVIRONMENT_TORCH_RECORDER_H_
