// RecorderReader: answers the driver's requests for the counters and trace rings of this host's
// ranks. Maps the page of their generation itself, so that of the last generation stays readable
// after all its ranks have ended. Does not disturb the ranks, except that they measure their waits
// on request.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_LIVE_RECORDER_READER_H_
#define HVD_LAUNCHER_LIVE_RECORDER_READER_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <vector>

#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/segment/mapped_page.h"
#include "runtime/trace/tick_clock.h"

namespace hvd {

// A rank of a generation on this host whose trace ring is read.
struct TracedRank {
  uint32_t worker = 0, rank = 0, local_rank = 0;
  int pid = 0;  // of its process
};

class RecorderReader {
 public:
  RecorderReader(asio::io_context& io, std::function<void(const ToDriver&)> send);

  // A generation has begun on this host; `fd` is of its page.
  void UsePage(int fd, size_t bytes, uint64_t generation, std::vector<TracedRank> ranks);
  // Sends CountsReply.
  void Answer(const AskCounts& question);
  // Sends RingReply for each rank, then RingsOver.
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
