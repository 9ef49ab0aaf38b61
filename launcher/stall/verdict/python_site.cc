#include "launcher/stall/verdict/python_site.h"

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// `  File "a.py", line 3 in f`
std::optional<PythonFrame> FrameOf(std::string_view text) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kIn = " in ";
  if (!text.starts_with(kFile)) return std::nullopt;
  const size_t file_end = text.rfind(kLine);
  if (file_end == std::string_view::npos || file_end < kFile.size()) return std::nullopt;
  const std::string_view rest = text.substr(file_end + kLine.size());
  const size_t line_end = rest.find(kIn);
  if (line_end == std::string_view::npos) return std::nullopt;
  return PythonFrame{text.substr(kFile.size(), file_end - kFile.size()), rest.substr(0, line_end),
                     rest.substr(line_end + kIn.size())};
}

// `    f (a.py:3)`
std::optional<PythonFrame> PySpyFrameOf(std::string_view text) {
  constexpr std::string_view kIndent = "    ";
  const size_t colon = text.rfind(':');
  const size_t open = text.find(" (");
  const bool shaped = text.starts_with(kIndent) && text.ends_with(')') &&
                      open != std::string_view::npos && colon != std::string_view::npos &&
                      open + 2 < colon;
  if (!shaped) return std::nullopt;
  return PythonFrame{text.substr(open + 2, colon - open - 2),
                     text.substr(colon + 1, text.size() - colon - 2),
                     text.substr(kIndent.size(), open - kIndent.size())};
}

std::string_view PopLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

// Of frames from the innermost one outwards.
struct Innermost {
  std::string any, own;

  void Add(const PythonFrame& frame) {
    if (any.empty()) any = FrameSite(frame);
    if (own.empty() && !IsLibraryFile(frame.file)) own = FrameSite(frame);
  }
  const std::string& site() const { return own.empty() ? any : own; }
};

}  // namespace

bool IsLibraryFile(std::string_view file) {
  constexpr auto kSigns = std::to_array<std::string_view>(
      {"/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "/horovod/"});
  return file.starts_with('<') || std::ranges::any_of(kSigns, [&](std::string_view sign) {
           return file.find(sign) != std::string_view::npos;
         });
}

std::string FrameSite(const PythonFrame& frame) {
  return std::string(frame.file) + ":" + std::string(frame.line) + " in " +
         std::string(frame.function);
}

std::string PythonSite(std::string_view stacks) {
  Innermost main;
  while (!stacks.empty()) {
    const std::string_view line = PopLine(&stacks);
    // Threads are listed from the newest to the oldest, which is the main thread.
    if (line.starts_with("Thread ") || line.starts_with("Current thread ")) main = {};
    if (const std::optional<PythonFrame> frame = FrameOf(line)) main.Add(*frame);
  }
  return main.site();
}

std::vector<PythonFrame> PySpyFrames(std::string_view dump, int pid) {
  const std::string begin = Format("Thread {} ", pid);
  std::vector<PythonFrame> main;
  for (bool inside = false; !dump.empty();) {
    const std::string_view line = PopLine(&dump);
    if (line.starts_with("Thread ")) inside = line.starts_with(begin);
    if (!inside) continue;
    if (const std::optional<PythonFrame> frame = PySpyFrameOf(line)) main.push_back(*frame);
  }
  return main;
}

std::string PySpySite(std::string_view dump, int pid) {
  Innermost main;
  for (const PythonFrame& frame : PySpyFrames(dump, pid)) main.Add(frame);
  return main.site();
}

}  // namespace hvd
