#include "launcher/channels/step/step_lines.h"

namespace hvd {
namespace {

constexpr std::string_view kBegins = "hvdrun-agent ";
constexpr size_t kIdDigits = 16;

}  // namespace

std::optional<StepLine> ReadStepLine(std::string_view line) {
  if (!line.starts_with(kBegins)) return std::nullopt;
  line.remove_prefix(kBegins.size());
  const std::string_view id = line.substr(0, kIdDigits), rest = line.substr(id.size());
  if (id.size() < kIdDigits || id.find_first_not_of("0123456789abcdef") != id.npos)
    return std::nullopt;
  if (!rest.empty() && rest.front() != ' ') return std::nullopt;
  return StepLine{std::string(id), std::string(rest.empty() ? rest : rest.substr(1))};
}

std::optional<StepLine> StepLines::Next() {
  for (size_t end = held_.find('\n'); end != held_.npos; end = held_.find('\n')) {
    const std::optional<StepLine> line = ReadStepLine(std::string_view(held_).substr(0, end));
    held_.erase(0, end + 1);
    if (line) return line;
  }
  if (held_.size() > kLongest) held_.clear();
  return std::nullopt;
}

}  // namespace hvd
