#include "launcher/agent/environment/torch_recorder.h"

#include <charconv>

namespace hvd {
namespace {

constexpr TorchVersion kFirst{2, 5};
// The first version with names other than NCCL's. It warns about the older names.
constexpr TorchVersion kOwnNames{2, 8};
// Operations recorded per process; PyTorch's own default since 2.7.
constexpr const char* kEntries = "2000";

constexpr const char* kSize = "TORCH_FR_BUFFER_SIZE";
constexpr const char* kOldSize = "TORCH_NCCL_TRACE_BUFFER_SIZE";
constexpr const char* kFile = "TORCH_FR_DUMP_TEMP_FILE";
constexpr const char* kOldFile = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE";
constexpr const char* kOnTimeout = "TORCH_NCCL_DUMP_ON_TIMEOUT";
constexpr const char* kPipe = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";

}  // namespace

// __version__ = '2.15.0+cpu'
std::optional<TorchVersion> ParseTorchVersion(std::string_view text) {
  constexpr std::string_view kName = "__version__";
  for (size_t at = 0; (at = text.find(kName, at)) != text.npos; at += kName.size()) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    const size_t digit = line.find_first_of("0123456789");
    if (digit == line.npos) continue;
    TorchVersion version;
    const char* const end = line.data() + line.size();
    const auto [dot, error] = std::from_chars(line.data() + digit, end, version.major);
    if (error != std::errc() || dot == end || *dot != '.') continue;
    if (std::from_chars(dot + 1, end, version.minor).ec == std::errc()) return version;
  }
  return std::nullopt;
}

std::vector<RecorderVariable> RecorderVariables(TorchVersion version, const std::string& stem) {
  if (version < kFirst) return {};
  const RecorderVariable pipe{kPipe, stem, nullptr};
  if (version < kOwnNames)
    return {{kOldSize, kEntries, kSize}, {kOldFile, stem, kFile}, {kOnTimeout, "1", nullptr}, pipe};
  return {{kSize, kEntries, kOldSize}, {kFile, stem, kOldFile}, pipe};
}

}  // namespace hvd
