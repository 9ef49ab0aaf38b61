#include "launcher/live/recorder_reader.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "configs/message_text.h"
#include "launcher/process/thread_state.h"
#include "runtime/base/log.h"
#include "runtime/trace/ring_reader.h"
#include "runtime/trace/ticks.h"

namespace hvd {
namespace {

// Time after the last question after which the driver is gone or its user has left.
constexpr Duration kLongestMeasured = std::chrono::minutes(1);

RankActivity ActivityOf(const TracedRank& rank, const RankBlock& block, bool waits) {
  const auto state = static_cast<RankState>(block.state.load(std::memory_order_acquire));
  if (state == RankState::kLeft) return RankActivity::kLeft;
  if (state != RankState::kIn) return RankActivity::kOutside;
  const std::string process = ReadThreadState(rank.pid).state;
  if (process == "T" || process == "t") return RankActivity::kStopped;
  const bool sleeps = block.last.waiting.load(std::memory_order_relaxed) != 0;
  return waits || sleeps ? RankActivity::kWaiting : RankActivity::kComputing;
}

// The rank may be writing it; it is only for display.
std::string LastSubmitted(const LastCollective& last) {
  if (last.sequence.load(std::memory_order_acquire) == 0) return "";
  return Printable(std::string_view(last.name, ::strnlen(last.name, sizeof last.name)));
}

}  // namespace

RecorderReader::RecorderReader(asio::io_context& io, std::function<void(const ToDriver&)> send)
    : send_(std::move(send)), measure_timer_(io) {
  clock_.Add(ReadTickPair());
}

void RecorderReader::UsePage(int fd, size_t bytes, uint64_t generation,
                             std::vector<TracedRank> ranks) {
  ranks_.clear();
  generation_ = 0;
  Result<MappedPage> page = MapPage(fd, bytes);
  // A damaged page is reported by the watch over the ranks; most jobs are never viewed.
  if (!page.ok())
    return LogDebug("hvdrun top cannot see the ranks of this host: " + page.status().message());
  page_ = std::move(*page);
  generation_ = generation;
  ranks_ = std::move(ranks);
  if (measuring_) WantCounts(true);
}

void RecorderReader::WantCounts(bool wanted) {
  for (const TracedRank& rank : ranks_) {
    const RingReader ring(page_.page.trace(rank.local_rank));
    wanted ? ring.Want(kTraceCounts) : ring.WantNoMore(kTraceCounts);
  }
}

void RecorderReader::Measure(Duration limit) {
  if (!std::exchange(measuring_, true)) WantCounts(true);
  measure_timer_.expires_after(std::min(limit, kLongestMeasured));
  measure_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    measuring_ = false;
    WantCounts(false);
  });
}

WorkerCounts RecorderReader::CountsOf(const TracedRank& rank) const {
  const RankBlock& block = page_.page.rank(rank.local_rank);
  const RingReader ring(page_.page.trace(rank.local_rank));
  const RankCounts counts = ring.Counts(ReadTicks(ring.clock()));
  WorkerCounts sample;
  sample.worker = rank.worker;
  sample.rank = rank.rank;
  sample.activity = ActivityOf(rank, block, counts.waiting);
  sample.operations = counts.operations;
  sample.bytes = counts.bytes;
  sample.steps = counts.steps;
  sample.commits = block.commits.load(std::memory_order_relaxed);
  sample.last = counts.last;
  sample.waited_ns = clock_.DurationNs(ring.clock(), counts.waited);
  sample.collective =
      static_cast<uint8_t>(block.last.collective.load(std::memory_order_relaxed) & 0xff);
  sample.last_submitted = LastSubmitted(block.last);
  return sample;
}

void RecorderReader::Answer(const AskCounts& question) {
  clock_.Add(ReadTickPair());
  if (question.measure_ms > 0) Measure(std::chrono::milliseconds(question.measure_ms));
  CountsReply reply{question.number, generation_, SteadyNanoseconds(), {}};
  for (const TracedRank& rank : ranks_) reply.workers.push_back(CountsOf(rank));
  send_(reply);
}

void RecorderReader::Answer(const AskRings& question) {
  clock_.Add(ReadTickPair());
  for (const TracedRank& rank : ranks_) {
    RingReader ring(page_.page.trace(rank.local_rank));
    std::vector<TraceRecord> records;
    RingReply reply{question.number, rank.worker, rank.rank, generation_, {}};
    (void)ring.Read(&records, SIZE_MAX);  // a dump need not report overwritten records
    StampInSteadyNs(records, ring.clock(), clock_);
    reply.records.assign(reinterpret_cast<const char*>(records.data()),
                         records.size() * sizeof(TraceRecord));
    send_(reply);
  }
  send_(RingsOver{question.number});
}

}  // namespace hvd
