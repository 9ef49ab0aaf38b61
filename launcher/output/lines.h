// Worker output on its way to the screen: LineBuffer (agent) collects whole lines, LastLines
// (agent) keeps the end of stderr for the report, LinePrefixer (driver) prefixes every line. Bytes
// are never changed, decoded or dropped. Pure.
#ifndef HVD_LAUNCHER_OUTPUT_LINES_H_
#define HVD_LAUNCHER_OUTPUT_LINES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/output/line_keeper.h"
#include "launcher/output/printed_output.h"
#include "launcher/output/text/prefix.h"
#include "launcher/wire/messages.h"

namespace hvd {

// A line ends after "\n" or "\r".
class LineBuffer {
 public:
  static constexpr size_t kMaxHeld = 16 * 1024;

  // The bytes to send: `held`, then `bytes`, a view into the argument.
  struct Ready {
    std::string held;
    std::string_view bytes;
  };

  // Returns the bytes up to the last line end, or everything once kMaxHeld bytes of an unfinished
  // line have accumulated.
  Ready Add(std::string_view bytes);
  // The rest, after the worker closed its end.
  std::string Flush() { return std::exchange(held_, {}); }
  bool empty() const { return held_.empty(); }

 private:
  std::string held_;
};

class LastLines {
 public:
  static constexpr size_t kMaxLines = 20;
  static constexpr size_t kMaxBytes = 8 * 1024;
  static constexpr size_t kMaxTracebackBytes = 32 * 1024;

  void Add(std::string_view bytes);
  // The last Python traceback in full, with the exceptions that it was chained to and the lines
  // after it; without one, the last lines.
  std::string Text() const;

 private:
  std::string tail_;
};

// The end of each rank's stderr as last shown on the screen, and how many lines followed it. Kept
// for the kMaxRanks ranks that wrote last.
class ShownErrors {
 public:
  static constexpr size_t kMaxRanks = 16;
  static constexpr size_t kMaxLinesAfter = 20;

  void Add(uint32_t rank, OutputStream stream, std::string_view bytes);
  // True if a rank's output ended with `text` and at most kMaxLinesAfter lines of others followed.
  bool EndWith(std::string_view text) const;

 private:
  struct Tail {
    uint32_t rank = 0;
    std::string text;
    uint64_t shown = 0;  // number of lines of all ranks up to its last one
  };
  std::vector<Tail> tails_;  // most recent writer last
  uint64_t lines_ = 0;
};

// Length of the first line of `bytes` including its end ("\n", "\r" or "\r\n"); 0 if no line ends
// in it. `returns`: false if `bytes` has no "\r", which is faster.
size_t LineLength(std::string_view bytes, bool returns);

// Values of {host} and {local_rank} in a prefix.
struct PrefixPlace {
  std::string host;
  uint32_t local_rank = 0;
};

// The state of a screen's last line, and the text to show next. Stdout and stderr use the same
// object if both lead to one place (a terminal, `2>&1`), so that they never write into one line.
struct ScreenLine {
  LineKeeper keeper;    // of the text to be shown there
  std::string text;     // removed by the owner of the screen
  std::string writer;   // stream and ranks of the unfinished line; empty: at the start of a line
  bool tracks = false;  // record which part of the text is of which rank:
  std::vector<PrintedSpan> spans = {};
  bool returned = false;  // the line ended with "\r": the next text replaces it
};

struct PrefixStyle {
  bool terminal = false;                 // the last line can be erased
  std::function<size_t()> columns = {};  // of the terminal; 0: unknown
  bool color = false;
  bool stamp = false;  // put the time before the prefix, unless the prefix contains {time}
  std::function<int64_t()> wall_seconds = {};
  PrefixTemplate prefix = PrefixTemplate::Default();
  std::vector<PrefixPlace> places = {};  // by rank; may be empty when the prefix names none
};

// "Fri Sep 11 07:07:20 2020", local time.
std::string TimeStampText(int64_t wall_seconds);

// One per screen stream. An unfinished line stays open for its rank; before anything else is
// written, it is ended with "\n", and later continued under a new prefix, so that two ranks never
// share a line. An update of a progress bar (a line that ends with "\r") is erased on a terminal
// and ended elsewhere. On a terminal it is also cut to the width, since "\r" returns only to the
// start of the last screen row.
class LinePrefixer {
 public:
  LinePrefixer(OutputStream stream, PrefixStyle style, ScreenLine& line);

  // Before the first Add.
  void set_places(std::vector<PrefixPlace> places) { style_.places = std::move(places); }
  // Shows bytes of this rank.
  void Add(uint32_t rank, std::string_view bytes);
  // The same for bytes that many ranks wrote; `ranks` ascend.
  void AddFolded(std::span<const uint32_t> ranks, std::string_view bytes);
  // Ends an unfinished line. Call before anything else is printed, and at the end.
  void Close();
  // Continues on a screen that another hvdrun left inside a line of this rank.
  void GoOnWith(uint32_t rank, bool returned);
  // The terminal itself began a new line: Enter was pressed.
  void LineTyped();

 private:
  struct Label {
    std::string name;    // "3", "0-3"
    std::string writer;  // with the stream
    std::string prefix;  // including colour and time
    size_t columns = 0;  // of the prefix
    int64_t made_at = -1;
  };

  void MakePrefix(Label& label, std::span<const uint32_t> ranks) const;
  const Label& LabelOf(uint32_t rank);
  int64_t Now() const { return timed_ ? style_.wall_seconds() : 0; }
  void Put(const Label& label, std::span<const uint32_t> ranks, std::string_view bytes);
  void PutRaw(std::span<const uint32_t> ranks, std::string_view bytes);
  void PutUpdate(const Label& label, std::string_view update);

  OutputStream stream_;
  PrefixStyle style_;
  ScreenLine& line_;
  bool timed_;
  std::vector<Label> labels_;  // by rank, created on first use
  Label folded_;
  std::vector<uint32_t> folded_ranks_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_LINES_H_
