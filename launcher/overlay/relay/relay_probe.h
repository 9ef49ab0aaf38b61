// RelayProbe: how fast a way through the driver is, found out by sending on it: a few single bytes
// for the latency, then as much as it takes for about a third of a second. Pure: time is passed in,
// and the owner sends.
#ifndef HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PROBE_H_
#define HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

class RelayProbe {
 public:
  static constexpr Duration kSending = std::chrono::milliseconds(300);
  static constexpr Duration kLimit = std::chrono::seconds(10);  // for all of it
  static constexpr uint64_t kMost = 32 * 1024 * 1024;           // bytes

  explicit RelayProbe(TimePoint now) : began_(now) {}

  // How many bytes to send now; 0: none. Ask until it says so.
  size_t Next(TimePoint now);
  // So many bytes came back as credit.
  void Arrived(uint64_t bytes, TimePoint now);

  bool over(TimePoint now) const;
  // When it is over by itself.
  TimePoint deadline() const { return began_ + kLimit; }
  // Once it is over; the host is the owner's to fill in.
  RelayMeasured result() const;

 private:
  bool enough(TimePoint now) const { return sent_ >= kMost || now >= sending_since_ + kSending; }

  const TimePoint began_;
  int pings_ = 0;  // that came back
  TimePoint ping_sent_{};
  std::optional<Duration> latency_;  // the best
  TimePoint sending_since_{}, last_arrival_{};
  uint64_t sent_ = 0, arrived_ = 0;  // after the pings
  uint64_t in_flight_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PROBE_H_
