// ProgressThrottle: limits updates of progress bars, which rewrite their line with "\r" many times
// a second. Each rank may show a burst and then a bounded number of updates per second; a held
// update is replaced by the next, and the last one is always shown: when it is due, before the
// rank's next whole line, or at the end. All other output passes. Pure: time is passed in.
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

// One per screen stream.
class ProgressThrottle {
 public:
  using Pass = std::function<void(uint32_t rank, std::string_view bytes)>;

  // `per_second`: updates of each rank; 0: no limit. `one_bar`: only one rank's bar is shown at a
  // time, until its line ends or it pauses for kStill. `drop` is called with the size of replaced
  // updates before anything later of the rank passes.
  using Drop = std::function<void(uint32_t rank, size_t bytes)>;
  ProgressThrottle(
      uint32_t size, int per_second, bool one_bar, Pass pass, Drop drop = [](uint32_t, size_t) {});

  void Add(uint32_t rank, std::string_view bytes, TimePoint now);
  // When to call Due; nothing if no update is held.
  std::optional<TimePoint> deadline() const;
  void Due(TimePoint now);
  // Passes everything held.
  void Flush();

 private:
  struct Rank {
    TimePoint spent_until{};  // token bucket: the updates shown use the rate up to this time
    std::string held;         // an update
    bool open = false;        // the last text passed is an unfinished line, whose end passes, too
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

  // The updates of one second may come in a burst.
  static constexpr Duration kBurst = std::chrono::seconds(1);
  static constexpr Duration kStill = std::chrono::seconds(2);

  Duration between_;  // zero: no limit
  bool one_bar_;
  std::optional<uint32_t> bar_;  // the rank that has the bar
  TimePoint bar_shown_{};
  Pass pass_;
  Drop drop_;
  std::vector<Rank> ranks_;
  // Due time and rank of the held updates; without ranks that do not have the bar.
  std::set<std::pair<TimePoint, uint32_t>> held_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_PROGRESS_THROTTLE_H_
