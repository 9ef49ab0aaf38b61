// RelayProbe: measures a route through the driver: a few single bytes for the latency, then bulk
// data for kSending for the bandwidth. Pure: time is passed in, and the owner sends.
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
  static constexpr Duration kLimit = std::chrono::seconds(10);  // for the whole probe
  static constexpr uint64_t kMost = 32 * 1024 * 1024;           // bytes

  explicit RelayProbe(TimePoint now) : began_(now) {}

  // Number of bytes to send now. Call until it returns 0.
  size_t Next(TimePoint now);
  // `bytes` came back as credit.
  void Arrived(uint64_t bytes, TimePoint now);

  bool over(TimePoint now) const;
  // When the probe times out.
  TimePoint deadline() const { return began_ + kLimit; }
  // After over(); the owner fills in the host.
  RelayMeasured result() const;

 private:
  bool enough(TimePoint now) const { return sent_ >= kMost || now >= sending_since_ + kSending; }

  const TimePoint began_;
  int pings_ = 0;  // answered
  TimePoint ping_sent_{};
  std::optional<Duration> latency_;  // the best
  TimePoint sending_since_{}, last_arrival_{};
  uint64_t sent_ = 0, arrived_ = 0;  // of bulk data
  uint64_t in_flight_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_RELAY_RELAY_PROBE_H_
