// RecorderReader: tells the driver, when it asks, what the ranks of this host have done so far and
// what their trace rings have. It reads the page of their generation, which it maps itself: that of
// the last generation stays readable after all its ranks have ended. The ranks notice nothing, but
// that they measure their waits while somebody wants to know.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_LIVE_RECORDER_READER_H_
#define HVD_LAUNCHER_LIVE_RECORDER_READER_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <vector>

#include "launcher/live/traced_rank.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/segment/mapped_page.h"
#include "timeline/tick_clock.h"

namespace hvd {

class RecorderReader {
 public:
  RecorderReader(asio::io_context& io, std::function<void(const ToDriver&)> send);

  // A generation has begun on this host; `fd` is that of its page.
  void UsePage(int fd, size_t bytes, uint64_t generation, std::vector<TracedRank> ranks);
  // Answered by CountsReply.
  void Answer(const AskCounts& question);
  // Answered by RingReply for each rank, then RingsOver.
  void Answer(const AskRings& question);

 private:
  void Measure(Duration limit);
  void WantCounts(bool wanted);
  WorkerCounts CountsOf(const TracedRank& rank) const;

  const std::function<void(const ToDriver&)> send_;
  asio::steady_timer measure_timer_;
  bool measuring_ = false;
  MappedPage page_;
  uint64_t generation_ = 0;
  std::vector<TracedRank> ranks_;
  TickClock clock_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_LIVE_RECORDER_READER_H_
