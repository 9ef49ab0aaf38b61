// ScreenText: the output of the ranks on one stream becomes the text of the screen: updates of
// progress bars are thinned out, equal lines folded when asked (Python's tracebacks always: an
// error on all ranks is one error), and every line gets its prefix. The output held back meanwhile
// is bounded, and a rank inside of a line finishes it before others are shown. Pure: time is passed
// in.
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
  int updates_per_second = 0;  // of a progress bar, of each rank; 0: all of them
  bool fold = false;
  PrefixStyle style = {};
};

class ScreenText {
 public:
  // Shows what there is to show in `line`, which outlives this.
  ScreenText(OutputStream stream, ScreenTextOptions options, ScreenLine& line);
  ScreenText(const ScreenText&) = delete;
  ScreenText& operator=(const ScreenText&) = delete;

  // Before the first Add.
  void set_places(std::vector<PrefixPlace> places) { prefixer_.set_places(std::move(places)); }
  void Add(uint32_t rank, std::string_view bytes, TimePoint now);
  // The screen stands where another hvdrun has left it.
  void GoOnWith(uint32_t rank, bool returned) { prefixer_.GoOnWith(rank, returned); }
  // A line of hvdrun itself, with its end; an unfinished line of a rank is ended first.
  void AddOwn(const std::string& line);
  // Somebody typed a line into the terminal that shows this.
  void LineTyped() { prefixer_.LineTyped(); }
  // When something that is held back must be shown; then call Due.
  std::optional<TimePoint> deadline() const;
  void Due(TimePoint now);
  // Everything that is held back, and the end of an unfinished line.
  void Finish();

 private:
  void Pass(uint32_t rank, std::string_view bytes);
  void Keep(std::span<const uint32_t> ranks, std::string_view bytes);
  bool Folds(uint32_t rank, std::string_view bytes);

  // Where updates were left out, in the bytes of a rank that passed.
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
  TimePoint now_{};  // of the last Add or Due, for what passes the throttle
  ScreenLine& line_;
  bool folds_all_;
  std::vector<Passed> passed_;          // by rank, where the line tracks
  std::vector<TimePoint> folds_until_;  // by rank: it prints a traceback
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_SCREEN_TEXT_H_
