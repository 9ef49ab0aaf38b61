// Progress: one line on a terminal while the job starts, rewritten in place and erased before
// anything else is shown. Not shown for a quick start. Pure: time is passed in.
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

  // kQuiet while hosts are being connected, which takes longer.
  static constexpr Duration kQuietHosts = std::chrono::seconds(1);

  // `hosts`: the job waits for hosts until HostsReady().
  Progress(uint32_t size, TimePoint now, bool hosts = false)
      : joined_(size), next_(now + (hosts ? kQuietHosts : kQuiet)), hosts_(hosts) {}

  void HostsChanged() { changed_ = true; }
  void HostsReady() { hosts_ = false, changed_ = true; }

  void WorkerStarted() { ++started_, changed_ = true; }
  void RankJoined(uint32_t rank);
  // When Show has something new; nothing while nothing changes, and after the start.
  std::optional<TimePoint> due() const;
  // The current line with its control characters; `hosts`: text on the state of the hosts, while
  // the job waits for them. The start is over with the last rank in init.
  std::string Show(TimePoint now, const std::string& hosts = "");
  // Returns the bytes that erase the line, before something else is shown. Ends the progress line
  // for good.
  std::string Wipe();

 private:
  std::string Missing() const;

  std::vector<bool> joined_;  // by rank
  TimePoint next_;
  size_t started_ = 0, in_init_ = 0;
  bool hosts_;  // the job waits for hosts
  bool changed_ = true, shown_ = false, over_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_PROGRESS_H_
