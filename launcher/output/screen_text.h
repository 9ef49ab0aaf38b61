// ScreenText: turns the output of the ranks on one stream into the text of the screen: limits
// updates of progress bars, folds equal lines if enabled (Python tracebacks always: an error on all
// ranks is one error), and prefixes every line. Held output is bounded, and a rank finishes its
// line before others are shown. Pure: time is passed in.
#ifndef HVD_LAUNCHER_OUTPUT_SCREEN_TEXT_H_
#define HVD_LAUNCHER_OUTPUT_SCREEN_TEXT_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/output/line_folder.h"
#include "launcher/output/lines.h"
#include "launcher/output/progress_throttle.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

struct ScreenTextOptions {
  uint32_t ranks = 0;
  int updates_per_second = 0;  // progress bar updates of each rank; 0: no limit
  bool fold = false;
  PrefixStyle style = {};
};

class ScreenText {
 public:
  // Puts the text into `line`, which outlives this.
  ScreenText(OutputStream stream, ScreenTextOptions options, ScreenLine& line);
  ScreenText(const ScreenText&) = delete;
  ScreenText& operator=(const ScreenText&) = delete;

  // Before the first Add.
  void set_places(std::vector<PrefixPlace> places) { prefixer_.set_places(std::move(places)); }
  void Add(uint32_t rank, std::string_view bytes, TimePoint now);
  // Continues on a screen that another hvdrun left inside a line of this rank.
  void GoOnWith(uint32_t rank, bool returned) { prefixer_.GoOnWith(rank, returned); }
  // Adds a line of hvdrun itself, including its end; an unfinished line of a rank is ended first.
  void AddOwn(const std::string& line);
  // The user typed a line into the terminal.
  void LineTyped() { prefixer_.LineTyped(); }
  // When to call Due; nothing if nothing is held.
  std::optional<TimePoint> deadline() const;
  void Due(TimePoint now);
  // Shows everything held, and ends an unfinished line.
  void Finish();

 private:
  void Pass(uint32_t rank, std::string_view bytes);
  void Keep(std::span<const uint32_t> ranks, std::string_view bytes);
  bool Folds(uint32_t rank, std::string_view bytes);

  // Positions, in the bytes of a rank that passed, at which updates were left out.
  struct Passed {
    struct Drop {
      uint64_t at = 0, bytes = 0;
    };
    uint64_t passed = 0, shown = 0;
    std::deque<Drop> drops;
  };

  void Show(std::span<const uint32_t> ranks, std::string_view bytes);
  void NoteDrops(size_t first_span);

  LinePrefixer prefixer_;
  const LineKeeper::Show show_;
  std::optional<LineFolder> folder_;
  ProgressThrottle throttle_;
  TimePoint now_{};  // of the last Add or Due, for output that passes the throttle
  ScreenLine& line_;
  bool folds_all_;
  std::vector<Passed> passed_;          // by rank, if the line tracks ranks
  std::vector<TimePoint> folds_until_;  // by rank: while it prints a traceback
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_SCREEN_TEXT_H_
