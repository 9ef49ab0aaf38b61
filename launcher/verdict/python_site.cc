#include "launcher/verdict/python_site.h"

#include <algorithm>
#include <array>
#include <optional>

namespace hvd {
namespace {

struct Frame {
  std::string_view file, line, function;
};

// `  File "a.py", line 3 in f`
std::optional<Frame> FrameOf(std::string_view text) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kIn = " in ";
  if (!text.starts_with(kFile)) return std::nullopt;
  const size_t file_end = text.rfind(kLine);
  if (file_end == std::string_view::npos || file_end < kFile.size()) return std::nullopt;
  const std::string_view rest = text.substr(file_end + kLine.size());
  const size_t line_end = rest.find(kIn);
  if (line_end == std::string_view::npos) return std::nullopt;
  return Frame{text.substr(kFile.size(), file_end - kFile.size()), rest.substr(0, line_end),
               rest.substr(line_end + kIn.size())};
}

bool IsLibrary(std::string_view file) {
  constexpr auto kSigns = std::to_array<std::string_view>(
      {"/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "/horovod/"});
  return file.starts_with('<') || std::ranges::any_of(kSigns, [&](std::string_view sign) {
           return file.find(sign) != std::string_view::npos;
         });
}

std::string Text(const Frame& frame) {
  return std::string(frame.file) + ":" + std::string(frame.line) + " in " +
         std::string(frame.function);
}

}  // namespace

std::string PythonSite(std::string_view stacks) {
  std::string innermost, own;
  while (!stacks.empty()) {
    const size_t end = std::min(stacks.find('\n'), stacks.size());
    const std::string_view line = stacks.substr(0, end);
    stacks.remove_prefix(std::min(end + 1, stacks.size()));
    if (line.starts_with("Thread ") || line.starts_with("Current thread ")) {
      // Threads come with the newest first, and the main thread is the oldest.
      innermost.clear();
      own.clear();
      continue;
    }
    const std::optional<Frame> frame = FrameOf(line);
    if (!frame) continue;
    if (innermost.empty()) innermost = Text(*frame);
    if (own.empty() && !IsLibrary(frame->file)) own = Text(*frame);
  }
  return own.empty() ? innermost : own;
}

}  // namespace hvd
