// Worker output on its way to the screen: LineBuffer (agent) gathers whole lines, LastLines (agent)
// keeps the end of stderr for the report, LinePrefixer (driver) puts the prefix in front of every
// line. Bytes are never changed, decoded or dropped. Pure.
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

  // The bytes that may go on, one part after the other; the second is a part of the argument.
  struct Ready {
    std::string held;
    std::string_view bytes;
  };

  // Takes bytes as they come. Those up to the last line end may go on, or all once kMaxHeld bytes
  // of an unfinished line have gathered.
  Ready Add(std::string_view bytes);
  // The rest, when the worker closed its end.
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
  // The last Python traceback with all that led to it, whole, and the lines after it; else the last
  // lines.
  std::string Text() const;

 private:
  std::string tail_;
};

// What was on the screen last: the end of each rank's stderr, and how many lines came after it. Of
// the ranks that wrote last, to bound it.
class ShownErrors {
 public:
  static constexpr size_t kMaxRanks = 16;
  static constexpr size_t kMaxLinesAfter = 20;

  void Add(uint32_t rank, OutputStream stream, std::string_view bytes);
  // A rank wrote this last, and few lines of others came after it.
  bool EndWith(std::string_view text) const;

 private:
  struct Tail {
    uint32_t rank = 0;
    std::string text;
    uint64_t shown = 0;  // lines of all ranks up to its last one
  };
  std::vector<Tail> tails_;  // the one that wrote last comes last
  uint64_t lines_ = 0;
};

// The length of the first line of `bytes` with its end ("\n", "\r" or "\r\n"); 0 when it has none.
// `returns`: false when no "\r" is in it, which makes it quick.
size_t LineLength(std::string_view bytes, bool returns);

// Where a rank is, as a prefix says it.
struct PrefixPlace {
  std::string host;
  uint32_t local_rank = 0;
};

// The last line of a screen as it stands, and the text to be shown next. Stdout and stderr share it
// where both lead to one place (a terminal, `2>&1`), so that they never share a line.
struct ScreenLine {
  LineKeeper keeper;  // of what is to be shown there
  std::string text;   // to be taken out by the owner of the screen
  std::string
      writer;  // stream and ranks of what stands there without an end; empty: a new line begins
  bool tracks = false;  // what of the text is of which rank:
  std::vector<PrintedSpan> spans = {};
  bool returned = false;  // it ended with "\r": what comes next replaces it
};

struct PrefixStyle {
  bool terminal = false;                 // what stands there can be erased
  std::function<size_t()> columns = {};  // of the terminal; 0: not known
  bool color = false;
  bool stamp = false;  // the time in front of the prefix, unless that has it
  std::function<int64_t()> wall_seconds = {};
  PrefixTemplate prefix = PrefixTemplate::Default();
  std::vector<PrefixPlace> places = {};  // by rank; may be empty when the prefix names none
};

// "Fri Sep 11 07:07:20 2020", local time.
std::string TimeStampText(int64_t wall_seconds);

// For one screen stream. An unfinished line stays open for its rank; when something else is
// written, the open line is ended with "\n" first and continued later under a new prefix, so that
// two ranks never share a line. An update of a progress bar (a line that ends with "\r") is erased
// on a terminal, elsewhere ended. On a terminal it is also cut to one line, which "\r" would not
// lead back to the beginning of.
class LinePrefixer {
 public:
  LinePrefixer(OutputStream stream, PrefixStyle style, ScreenLine& line);

  // Before the first Add.
  void set_places(std::vector<PrefixPlace> places) { style_.places = std::move(places); }
  // Shows bytes of this rank.
  void Add(uint32_t rank, std::string_view bytes);
  // The same for those of many ranks, in ascending order.
  void AddFolded(std::span<const uint32_t> ranks, std::string_view bytes);
  // Makes room for a new line; before anything else is printed, and at the end.
  void Close();
  // The screen stands where another hvdrun has left it: inside of a line of this rank.
  void GoOnWith(uint32_t rank, bool returned);
  // The terminal itself has begun a new line: somebody pressed Enter.
  void LineTyped();

 private:
  struct Label {
    std::string name;    // "3", "0-3"
    std::string writer;  // with the stream
    std::string prefix;  // with the colour and the time
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
  std::vector<Label> labels_;  // by rank, made when first needed
  Label folded_;
  std::vector<uint32_t> folded_ranks_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_LINES_H_
