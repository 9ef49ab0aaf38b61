#include "launcher/driver/services/timeline_service.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace hvd {
namespace {

constexpr auto kEndLimit = std::chrono::seconds(5);
constexpr int64_t kTellEveryNs = 60'000'000'000;

std::vector<TraceRecord> Unpack(const std::string& bytes) {
  std::vector<TraceRecord> records(bytes.size() / sizeof(TraceRecord));
  if (!records.empty())  // the data of an empty vector may be null
    std::memcpy(records.data(), bytes.data(), records.size() * sizeof(TraceRecord));
  return records;
}

// The stamp of an event; none in a message that has names only.
std::optional<int64_t> FirstStamp(const std::vector<TraceRecord>& records) {
  for (const TraceRecord& record : records) {
    if (record.kind != TraceKind::kName) return static_cast<int64_t>(record.stamp);
  }
  return std::nullopt;
}

}  // namespace

struct TimelineService::Queue {
  std::unique_ptr<TimelineWriter> writer;  // of the thread
  Callbacks callbacks;
  Mutex mutex;
  std::condition_variable_any changed;
  std::deque<std::function<void(TimelineWriter&)>> work HVD_GUARDED_BY(mutex);
  Status failure HVD_GUARDED_BY(mutex);  // not yet passed to the callback
  bool closing HVD_GUARDED_BY(mutex) = false;
  bool over HVD_GUARDED_BY(mutex) = false;

  void Taken(uint32_t host, uint64_t bytes) {
    MutexLock lock(mutex);
    if (!closing) callbacks.taken(host, bytes);
  }
  void Failed(Status why) {
    MutexLock lock(mutex);
    if (closing) {
      failure = std::move(why);
    } else {
      callbacks.failed(why.message());
    }
  }
};

Result<std::unique_ptr<TimelineService>> TimelineService::Open(const TimelineOptions& options,
                                                               Callbacks callbacks) {
  auto writer = TimelineWriter::Create(options);
  if (!writer.ok()) return writer.status();
  auto queue = std::make_shared<Queue>();
  queue->writer = std::move(*writer);
  queue->callbacks = std::move(callbacks);
  std::unique_ptr<TimelineService> service(new TimelineService(queue));
  service->thread_ = std::thread([queue] { Run(queue); });
  return service;
}

void TimelineService::Run(const std::shared_ptr<Queue>& queue) {
  for (;;) {
    std::deque<std::function<void(TimelineWriter&)>> work;
    {
      MutexLock lock(queue->mutex);
      while (queue->work.empty() && !queue->closing) queue->changed.wait(queue->mutex);
      work.swap(queue->work);
      if (work.empty()) break;
    }
    for (const auto& piece : work) piece(*queue->writer);
    if (Status written = queue->writer->Flush(); !written.ok()) queue->Failed(std::move(written));
  }
  queue->writer->Finish();
  MutexLock lock(queue->mutex);
  queue->over = true;
  queue->changed.notify_all();
}

Status TimelineService::Close() {
  if (!thread_.joinable()) return Status::Ok();
  {
    MutexLock lock(queue_->mutex);
    queue_->closing = true;
    queue_->changed.notify_all();
    const TimePoint limit = SteadyNow() + kEndLimit;
    while (!queue_->over && SteadyNow() < limit) queue_->changed.wait_until(queue_->mutex, limit);
    if (!queue_->over) {
      thread_.detach();
      return Aborted("the end of the timeline could not be written within 5 s; its disk is slow");
    }
  }
  thread_.join();
  MutexLock lock(queue_->mutex);
  return std::move(queue_->failure);
}

void TimelineService::Push(std::function<void(TimelineWriter&)> work) {
  MutexLock lock(queue_->mutex);
  queue_->work.push_back(std::move(work));
  queue_->changed.notify_all();
}

void TimelineService::Add(uint32_t host, const std::string& name, const TraceBegun& begun,
                          const HostClock& clock) {
  const int64_t offset = offsets_[host].At(clock, begun.at_ns).value_or(0);
  Push([rank = begun.world_rank, name, generation = begun.generation, at = begun.at_ns + offset](
           TimelineWriter& writer) { writer.BeginRank(rank, name, generation, at); });
}

void TimelineService::Add(uint32_t host, const std::string& name, const TraceRecords& message,
                          const HostClock& clock) {
  std::vector<TraceRecord> records = Unpack(message.records);
  const std::optional<int64_t> first = FirstStamp(records);
  HostOffset& host_offset = offsets_[host];
  const int64_t offset = host_offset.At(clock, first.value_or(0)).value_or(0);
  for (TraceRecord& record : records) {
    if (record.kind != TraceKind::kName) record.stamp += static_cast<uint64_t>(offset);
  }
  const uint32_t rank = message.world_rank;
  const int64_t uncertainty = host_offset.uncertainty_ns();
  auto [written, is_new] = clocks_.try_emplace(rank);
  const TimePoint at(Duration(first.value_or(0) + offset));
  const bool tell = first && (is_new || written->second.offset_ns != offset ||
                              (at - written->second.at).count() > kTellEveryNs);
  if (tell) written->second = {offset, at};
  // The last copy goes away when the work is done: the records are in the file then.
  Push([queue = queue_.get(), host, rank, name, tell, offset, uncertainty, lost = message.lost,
        bytes = message.records.size(), records = std::move(records)](TimelineWriter& writer) {
    if (tell) writer.NoteClock(rank, name, offset, uncertainty);
    writer.Add(rank, records, lost);
    queue->Taken(host, bytes);
  });
}

}  // namespace hvd
