// TraceCollector: reads the trace rings of the ranks of this host and sends their records to the
// driver. Its memory is bounded: at most a window of records is on the way to the driver. Beyond
// that the rings overwrite their oldest events, and their readers count the lost ones.
//
// It maps the page itself, so it can read the records of a rank whose process was killed and whose
// generation is over. One thread, that of the io_context.
#ifndef HVD_LAUNCHER_AGENT_TRACE_COLLECTOR_H_
#define HVD_LAUNCHER_AGENT_TRACE_COLLECTOR_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "launcher/live/recorder_reader.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/segment/mapped_page.h"
#include "runtime/trace/ring_reader.h"
#include "runtime/trace/tick_clock.h"
#include "runtime/trace/ticks.h"

namespace hvd {

class TraceCollector {
 public:
  // `send` outlives this object; `on_drained` is called when Finish has come to its end.
  TraceCollector(asio::io_context& io, std::function<void(const ToDriver&)> send,
                 std::function<void()> on_drained);

  // The job has a timeline. Before the first generation.
  void Begin(TraceMode mode);
  // A generation has begun on this host; `fd` is that of its page. The records that the last one
  // left are sent first.
  void UsePage(int fd, size_t bytes, uint64_t generation, std::vector<TracedRank> ranks);
  // Records by others than the rank itself about a rank of this host, in nanoseconds of the host's
  // steady clock. A few records.
  void Add(uint32_t rank, std::span<const TraceRecord> records);
  // The driver has processed `bytes` of records.
  void Acknowledge(uint64_t bytes);
  // The workers have ended: sends the rest. True: all of it has arrived, or the driver accepted
  // none of it for too long; otherwise on_drained is called later.
  bool Finish();

 private:
  struct Reader {
    TracedRank rank;
    RingReader ring;
  };

  void Tick();
  // False where the window did not leave room for everything.
  bool Drain();
  bool DrainOne(Reader* reader);
  void Send(const TracedRank& rank, uint64_t lost, std::span<const TraceRecord> records);
  bool Drained();

  const std::function<void(const ToDriver&)> send_;
  const std::function<void()> on_drained_;
  asio::steady_timer timer_;
  TraceMode mode_ = TraceMode::kOff;
  MappedPage page_;
  uint64_t generation_ = 0;
  std::vector<Reader> readers_;
  TickClock clock_;
  std::vector<TraceRecord> records_;  // scratch
  uint64_t on_the_way_ = 0;           // bytes
  bool finishing_ = false;
  int looks_left_ = 0;  // until the driver is waited for no more
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_TRACE_COLLECTOR_H_
