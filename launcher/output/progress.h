// Progress: one line on a terminal while the job starts, rewritten in place and wiped before
// anything else is shown. A start that is quick shows none. Pure: time is passed in.
#ifndef HVD_LAUNCHER_OUTPUT_PROGRESS_H_
#define HVD_LAUNCHER_OUTPUT_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

class Progress {
 public:
  static constexpr Duration kQuiet = std::chrono::milliseconds(500);
  static constexpr Duration kBetween = std::chrono::milliseconds(100);

  // The same while hosts get ready: ways to them take longer.
  static constexpr Duration kQuietHosts = std::chrono::seconds(1);

  // `hosts`: first some hosts must get ready, until HostsReady().
  Progress(uint32_t size, TimePoint now, bool hosts = false)
      : joined_(size), next_(now + (hosts ? kQuietHosts : kQuiet)), hosts_(hosts) {}

  void HostsChanged() { changed_ = true; }
  void HostsReady() { hosts_ = false, changed_ = true; }

  void WorkerStarted() { ++started_, changed_ = true; }
  void RankJoined(uint32_t rank);
  // When Show has something new; nothing while nothing changes and once it is over.
  std::optional<TimePoint> due() const;
  // The line as it is now, ready for the terminal; `hosts` is how far they are, in words, while
  // some must get ready. With the last rank in init it is over.
  std::string Show(TimePoint now, const std::string& hosts = "");
  // Something else is about to be shown: the bytes that wipe the line. There will be no other one.
  std::string Wipe();

 private:
  std::string Missing() const;

  std::vector<bool> joined_;  // by rank
  TimePoint next_;
  size_t started_ = 0, in_init_ = 0;
  bool hosts_;  // some must get ready
  bool changed_ = true, shown_ = false, over_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_PROGRESS_H_
