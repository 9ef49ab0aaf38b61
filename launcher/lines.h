// Worker output on its way to the screen: LineBuffer (agent) gathers whole lines, LastLines (agent) keeps the end of
// stderr for the report, LinePrefixer (driver) puts "[<rank>]<stdout>:" in front of every line. Bytes are never
// changed, decoded or dropped. Pure.
#ifndef HVD_LAUNCHER_LINES_H_
#define HVD_LAUNCHER_LINES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/messages.h"

namespace hvd {

// A line ends after "\n" or "\r".
class LineBuffer {
 public:
  static constexpr size_t kMaxHeld = 16 * 1024;

  // Takes bytes as they come; returns those that may go on: up to the last line end, or all once kMaxHeld bytes of an
  // unfinished line have gathered.
  std::string Add(std::string_view bytes);
  // The rest, when the worker closed its end.
  std::string Flush() { return std::exchange(held_, {}); }

 private:
  std::string held_;
};

class LastLines {
 public:
  static constexpr size_t kMaxLines = 20;
  static constexpr size_t kMaxBytes = 8 * 1024;
  static constexpr size_t kMaxTracebackBytes = 32 * 1024;

  void Add(std::string_view bytes);
  // The last Python traceback with all that led to it, whole, and what follows it; else the last lines.
  std::string Text() const;

 private:
  std::string tail_;
};

struct PrefixStyle {
  bool color = false;
  std::function<std::string()> stamp = {};  // the time in front of each line, or empty
};

// "Fri Sep 11 07:07:20 2020", local time.
std::string TimeStampText(int64_t wall_seconds);

// For one screen stream. An unfinished line stays open for its rank; when another rank writes, the open line is ended
// with "\n" first and continued later under a new prefix, so that two ranks never share a line.
class LinePrefixer {
 public:
  explicit LinePrefixer(OutputStream stream, PrefixStyle style = {})
      : tag_(stream == OutputStream::kStdout ? "]<stdout>:" : "]<stderr>:"),
        style_(std::move(style)) {}

  // The text to print for bytes of this rank, or of those that the label names ("0", "0-3").
  std::string Add(uint32_t rank, std::string_view bytes) {
    return Add(std::to_string(rank), bytes);
  }
  std::string Add(const std::string& label, std::string_view bytes);
  // Ends an open line; before anything else is printed, and at the end.
  std::string Close();

 private:
  void PutPrefix(const std::string& label, std::string& out) const;

  const char* tag_;
  PrefixStyle style_;
  std::optional<std::string> open_;          // whose unfinished line is on the screen
  std::optional<std::string> after_return_;  // who wrote a "\r" last, with nothing after it
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LINES_H_
