#include "launcher/host_line.h"

#include <optional>
#include <utility>
#include <variant>

namespace hvd {
namespace {

StreamOptions StreamOptionsOf(uint64_t job, Duration heartbeat) {
  StreamOptions options;
  options.job = job;
  options.heartbeat = heartbeat;
  return options;
}

}  // namespace

HostLine::HostLine(HostLineObserver& observer, uint32_t host, uint64_t job, HostWay way,
                   Heartbeat heartbeat)
    : observer_(observer),
      host_(host),
      stream_(StreamOptionsOf(job, heartbeat.every)),
      channel_(std::move(way.channel)),
      preamble_(std::move(way.greeting)),
      heartbeat_(heartbeat) {}

void HostLine::Open() {
  stream_.Attach(SteadyNow());
  channel_->Open(*this);
  Flush();
}

void HostLine::Tell(const ToAgent& message) {
  if (ended_) return;
  if (const auto* begin = std::get_if<BeginEpoch>(&message)) stream_.set_epoch(begin->epoch);
  if (std::holds_alternative<StartJob>(message)) started_ = true;
  stream_.SendControl(EncodeToAgent(message));
  Flush();
}

void HostLine::ReturnCredit(size_t count) {
  stream_.ReturnCredit(count);
  Flush();
}

void HostLine::Flush() {
  while (!ended_) {
    std::string_view out = stream_.Outgoing();
    if (out.empty()) return;
    size_t wanted = out.size();
    size_t written = channel_->Write(out);
    stream_.Consume(written);
    if (written < wanted) return;
  }
}

void HostLine::Tick() {
  const TimePoint now = SteadyNow();
  if (now >= stream_.NextTick()) stream_.Tick(now);
  Flush();
  if (now < next_look_) return;
  next_look_ = now + heartbeat_.every;
  LookForSilence();
}

// Silence is counted in our own looks: when hvdrun itself was stopped for a while, what came meanwhile is read first.
void HostLine::LookForSilence() {
  if (ended_ || !started_) return;  // before that the stages have their limits
  const Duration limit = std::chrono::seconds(heartbeat_.limit_seconds);
  const Duration silent = heartbeat_.every * ++silent_looks_;
  if (silent >= limit && silent < limit + heartbeat_.every)
    Break("its agent has been silent for " + std::to_string(heartbeat_.limit_seconds) + " s");
}

void HostLine::OnStage(ChannelStage stage) {
  bool greets = stage == ChannelStage::kRunning && !preamble_.over();
  observer_.OnHostStage(host_, greets ? HostStage::kExec : StageOf(stage));
}

void HostLine::OnBytes(std::string_view bytes) {
  silent_looks_ = 0;
  if (preamble_.over()) return Receive(bytes);
  if (std::optional<std::string> rest = preamble_.Take(bytes)) {
    observer_.OnHostStage(host_, HostStage::kHello);
    return Receive(*rest);
  }
  if (preamble_.too_long()) Break("its shell says more than an agent would: " + preamble_.said());
}

void HostLine::Receive(std::string_view bytes) {
  Status status = stream_.Receive(bytes, SteadyNow());
  while (std::optional<StreamMessage> message = stream_.Next()) {
    if (Status taken = TakeMessage(message->bytes); !taken.ok()) {
      status = taken;
      break;
    }
  }
  observer_.OnReadOver(host_);
  if (!status.ok()) return Break("its stream is damaged: " + status.message());
  Flush();
}

Status HostLine::TakeMessage(std::string_view message) {
  if (std::optional<WorkerOutputView> output = PeekOutput(message)) {
    observer_.OnOutput(host_, *output, message.size());
    return Status::Ok();
  }
  Result<ToDriver> decoded = DecodeToDriver(message);
  if (!decoded.ok()) return decoded.status();
  if (std::holds_alternative<AgentGone>(*decoded)) {
    gone_ = true;
    stream_.Acknowledge();
    Flush();
  }
  observer_.OnMessage(host_, std::move(*decoded));
  return Status::Ok();
}

void HostLine::Break(const std::string& reason) {
  broken_ = reason;
  stream_.Detach();
  channel_->Close();
}

void HostLine::OnEnd(const ChannelEnd& end) {
  ended_ = true;
  if (gone_) return observer_.OnHostEnd(host_, "");
  if (!stream_.greeted() && end.stage != ChannelStage::kClosed)
    observer_.OnHostStage(host_, StageOf(end.stage));  // it knows better where that was
  observer_.OnHostEnd(host_, ReasonOf(end));
}

std::string HostLine::ReasonOf(const ChannelEnd& end) const {
  std::string reason = !broken_.empty() ? broken_ : end.reason;
  if (reason.empty()) reason = "its agent ended before the job";
  if (!preamble_.over() && !preamble_.said().empty())
    reason += " (its shell says: " + preamble_.said() + ")";
  return reason;
}

}  // namespace hvd
