// ProgressThrottle: a progress bar rewrites its line with "\r" many times a second. Of those
// updates each rank shows some at once and then a bounded number a second; one that is held back is
// replaced by the next, and the last is always shown: when its time has come, before the rank's
// next whole line, or at the end. Everything else passes. Pure: time is passed in.
#ifndef HVD_LAUNCHER_OUTPUT_PROGRESS_THROTTLE_H_
#define HVD_LAUNCHER_OUTPUT_PROGRESS_THROTTLE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

// For one screen stream.
class ProgressThrottle {
 public:
  using Pass = std::function<void(uint32_t rank, std::string_view bytes)>;

  // `per_second` updates of each rank; 0: all of them. `one_bar`: where there is room for one bar,
  // it is that of one rank until its line ends or it has been still for a while.
  // `drop` hears of those that were replaced, before anything later of the rank passes.
  using Drop = std::function<void(uint32_t rank, size_t bytes)>;
  ProgressThrottle(
      uint32_t size, int per_second, bool one_bar, Pass pass, Drop drop = [](uint32_t, size_t) {});

  void Add(uint32_t rank, std::string_view bytes, TimePoint now);
  // When an update that is held back may be shown; then call Due.
  std::optional<TimePoint> deadline() const;
  void Due(TimePoint now);
  // Passes what is held back.
  void Flush();

 private:
  struct Rank {
    TimePoint spent_until{};  // the updates shown so far, at the even rate, reach so far
    std::string held;         // an update
    bool open = false;  // the last that passed is an unfinished line: what ends it passes, too
  };

  bool MayShow(const Rank& rank, TimePoint now) const { return DueOf(rank) <= now; }
  TimePoint DueOf(const Rank& rank) const { return rank.spent_until - kBurst; }
  void DropHeld(uint32_t rank);
  void ShowUpdate(uint32_t rank, std::string_view update, TimePoint now);
  void Hold(uint32_t rank, std::string_view update);
  void PassHeld(uint32_t rank);

  bool HasBar(uint32_t rank, TimePoint now) const {
    return !one_bar_ || !bar_ || *bar_ == rank || bar_shown_ + kStill <= now;
  }

  // As many as one second has may come at once.
  static constexpr Duration kBurst = std::chrono::seconds(1);
  static constexpr Duration kStill = std::chrono::seconds(2);

  Duration between_;  // zero: everything passes
  bool one_bar_;
  std::optional<uint32_t> bar_;  // whose it is
  TimePoint bar_shown_{};
  Pass pass_;
  Drop drop_;
  std::vector<Rank> ranks_;
  // When it may be shown, and whose; not those of ranks that do not have the bar.
  std::set<std::pair<TimePoint, uint32_t>> held_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_PROGRESS_THROTTLE_H_
