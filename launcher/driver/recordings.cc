#include "launcher/driver/recordings.h"

#include <asio/post.hpp>

#include "launcher/driver/job_outline.h"
#include "launcher/wire/message_rights.h"

namespace hvd {

Recordings::Recordings(asio::io_context& io, const DriverOptions& options, const JobState& state,
                       TimePoint begun, AgentSet& agents, Screen& screen)
    : io_(io),
      options_(options),
      state_(state),
      begun_(begun),
      agents_(agents),
      screen_(screen),
      live_(io, LiveHooks()) {}

LiveService::Hooks Recordings::LiveHooks() {
  return {[this] { return OutlineOf(state_, options_.job_id); },
          [this] { return HostsAtWork(state_); },
          [this](uint32_t host, const ToAgent& message) { agents_.Send(host, message); },
          [this](uint32_t host) { return NameOf(host); },
          [this](uint32_t host) -> const HostClock& { return state_.clocks[host]; }};
}

// Null, after a message to the user, if it cannot be written.
std::unique_ptr<TimelineService> Recordings::OpenFile(const std::string& path, uint64_t most_bytes,
                                                      uint64_t most_steps, TimePoint now) {
  TimelineOptions file{path,
                       begun_.time_since_epoch().count(),
                       (WallNanoseconds() - (now - begun_).count()) / 1000,
                       most_bytes,
                       options_.settings.timeline_keep == TimelineKeep::kLast,
                       most_steps};
  const auto say = [this](const std::string& sentence) {
    screen_.Print(sentence + (state_.failure ? "" : "; the job goes on without it"));
  };
  auto opened = TimelineService::Open(
      file, {[this](uint32_t host, uint64_t bytes) {
               asio::post(io_, [this, host, bytes] { agents_.Send(host, TraceTaken{bytes}); });
             },
             [this, say](const std::string& sentence) {
               asio::post(io_, [say, sentence] { say(sentence); });
             }});
  if (opened.ok()) return std::move(*opened);
  say(opened.status().message());
  return nullptr;
}

void Recordings::OpenTimeline(TimePoint now) {
  const Settings& settings = options_.settings;
  if (!HasTimelineFile(settings)) return;
  timeline_ =
      OpenFile(settings.timeline_filename, static_cast<uint64_t>(settings.timeline_max_bytes),
               static_cast<uint64_t>(settings.timeline_steps), now);
}

void Recordings::OpenLive(DriverLog& log) {
  if (Status open = live_.Open(options_.job_id); !open.ok())
    log.Verbose("hvdrun top and dump do not see this job: " + open.message());
  const Settings& settings = options_.settings;
  if (settings.metrics_port < 0) return;
  const auto port = static_cast<uint16_t>(settings.metrics_port);
  if (Status open = live_.OpenMetrics(settings.metrics_bind, port); !open.ok())
    return screen_.Print(open.message() + "; the job goes on without it");
  const std::string url = "http://" + live_.metrics_address() + "/metrics";
  if (port == 0) screen_.Print("metrics are at " + url);
}

void Recordings::BeginFailureDump(TimePoint now) {
  const std::string& path = options_.settings.dump_on_failure;
  if (path.empty() || !state_.failure || failure_dump_ != nullptr) return;
  failure_dump_ = OpenFile(path, 0, 0, now);
  if (failure_dump_ != nullptr) agents_.SendToAll(AskRings{kFailureDump});
}

void Recordings::CloseFiles() {
  const bool dumped = failure_dump_ != nullptr;
  for (auto* timeline : {&timeline_, &failure_dump_}) {
    if (*timeline == nullptr) continue;
    if (Status written = (*timeline)->Close(); !written.ok()) screen_.Print(written.message());
    timeline->reset();
  }
  if (dumped)
    screen_.Print("the last events of the ranks are in " + options_.settings.dump_on_failure);
}

Status Recordings::Handle(uint32_t host, const TraceBegun& begun, TimePoint) {
  if (timeline_ && host < state_.clocks.size())
    timeline_->Add(host, NameOf(host), begun, state_.clocks[host]);
  return Status::Ok();
}

Status Recordings::Handle(uint32_t host, const TraceRecords& records, TimePoint) {
  if (timeline_ && host < state_.clocks.size())
    timeline_->Add(host, NameOf(host), records, state_.clocks[host]);
  return Status::Ok();
}

Status Recordings::Handle(uint32_t host, const CountsReply& reply, TimePoint) {
  HVD_RETURN_IF_ERROR(CheckWorkers(reply.workers, host, state_.plan.ranks));
  return live_.Handle(host, reply);
}

Status Recordings::Handle(uint32_t host, const RingReply& reply, TimePoint) {
  if (host >= state_.clocks.size()) return Status::Ok();
  if (reply.number != kFailureDump) {
    live_.Handle(host, reply);
  } else if (failure_dump_) {
    const HostClock& clock = state_.clocks[host];
    const TraceRecords records{reply.rank, reply.world_rank, reply.generation, 0, reply.records};
    const TraceBegun begun{reply.rank, reply.world_rank, reply.generation,
                           FirstStampIn(reply.records)};
    failure_dump_->Add(host, NameOf(host), begun, clock);
    failure_dump_->Add(host, NameOf(host), records, clock);
  }
  return Status::Ok();
}

Status Recordings::Handle(uint32_t host, const StacksReply& reply, TimePoint) {
  HVD_RETURN_IF_ERROR(CheckWorkers(reply.workers, host, state_.plan.ranks));
  live_.Handle(host, reply);
  return Status::Ok();
}

Status Recordings::Handle(uint32_t host, const RingsOver& over, TimePoint) {
  live_.Handle(host, over);
  return Status::Ok();
}

}  // namespace hvd
