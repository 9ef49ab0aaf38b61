#include "launcher/agent/trace_collector.h"

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"

namespace hvd {
namespace {

constexpr auto kEvery = std::chrono::milliseconds(20);
constexpr uint64_t kWindow = 4 << 20;
constexpr size_t kMostRecords = 1000;      // of one message
constexpr int kLooksAtTheEnd = 2000 / 20;  // two seconds

}  // namespace

TraceCollector::TraceCollector(asio::io_context& io, std::function<void(const ToDriver&)> send,
                               std::function<void()> on_drained)
    : send_(std::move(send)), on_drained_(std::move(on_drained)), timer_(io) {}

void TraceCollector::Begin(TraceMode mode) {
  if (mode == TraceMode::kOff || mode_ != TraceMode::kOff) return;
  mode_ = mode;
  clock_.Add(ReadTickPair());
  Tick();
}

void TraceCollector::UsePage(int fd, size_t bytes, uint64_t generation,
                             std::vector<TracedRank> ranks) {
  if (mode_ == TraceMode::kOff) return;
  Drain();
  readers_.clear();
  Result<MappedPage> page = MapPage(fd, bytes);
  if (!page.ok())
    return LogWarning("the timeline has no events of this host: " + page.status().message());
  page_ = std::move(*page);
  generation_ = generation;
  for (const TracedRank& rank : ranks) {
    readers_.push_back({rank, RingReader(page_.page.trace(rank.local_rank))});
    const bool cycles = mode_ == TraceMode::kWithCycles;
    readers_.back().ring.Want(uint32_t{kTraceForLauncher} | (cycles ? uint32_t{kTraceCycles} : 0U));
    send_(TraceBegun{rank.worker, rank.rank, generation, SteadyNanoseconds()});
  }
}

void TraceCollector::Tick() {
  clock_.Add(ReadTickPair());
  const bool all = Drain();
  if (finishing_ && ((all && on_the_way_ == 0) || --looks_left_ <= 0)) {
    looks_left_ = 0;
    return on_drained_();
  }
  timer_.expires_after(kEvery);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error) Tick();
  });
}

bool TraceCollector::Drain() {
  bool all = true;
  for (Reader& reader : readers_) all = DrainOne(&reader) && all;
  return all;
}

bool TraceCollector::DrainOne(Reader* reader) {
  while (reader->ring.HasMore()) {
    if (on_the_way_ >= kWindow) return false;
    records_.clear();
    const uint64_t lost = reader->ring.Read(&records_, kMostRecords);
    StampInSteadyNs(records_, reader->ring.clock(), clock_);
    Send(reader->rank, lost, records_);
  }
  return true;
}

void TraceCollector::Send(const TracedRank& rank, uint64_t lost,
                          std::span<const TraceRecord> records) {
  TraceRecords message;
  message.lost = lost;
  message.rank = rank.worker;
  message.world_rank = rank.rank;
  message.generation = generation_;
  message.records.assign(reinterpret_cast<const char*>(records.data()), records.size_bytes());
  on_the_way_ += message.records.size();
  send_(message);
}

void TraceCollector::Add(uint32_t rank, std::span<const TraceRecord> records) {
  const auto reader = std::find_if(readers_.begin(), readers_.end(),
                                   [rank](const Reader& known) { return known.rank.rank == rank; });
  if (reader == readers_.end()) return;
  (void)Drain();  // what the rank did before comes before it
  Send(reader->rank, 0, records);
}

void TraceCollector::Acknowledge(uint64_t bytes) { on_the_way_ -= std::min(bytes, on_the_way_); }

bool TraceCollector::Drained() { return Drain() && on_the_way_ == 0; }

bool TraceCollector::Finish() {
  if (mode_ == TraceMode::kOff) return true;
  if (finishing_) return looks_left_ == 0 || Drained();
  finishing_ = true;
  looks_left_ = kLooksAtTheEnd;
  return Drained();
}

}  // namespace hvd
