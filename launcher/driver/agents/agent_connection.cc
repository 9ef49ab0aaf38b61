#include "launcher/driver/agents/agent_connection.h"

#include <optional>
#include <utility>
#include <variant>

#include "launcher/channels/bundle/remote_script.h"
#include "launcher/output/text/phrases.h"
#include "launcher/process/jobs/job_id.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// The script tries a few folders.
constexpr int kMostAsked = 8;
// It looks at our path and at PATH.
constexpr int kMostSkipped = 2;

// The exit of a shell whose start-up file called exit: our script never ran.
bool MayBeStartUpFile(const ChannelEnd& end) {
  return end.stage >= ChannelStage::kExec &&
         (end.reason.empty() || end.reason.starts_with("the agent ended with exit code ") ||
          end.reason == "it ended before the agent said a word");
}

StreamOptions StreamOptionsOf(uint64_t job, Duration heartbeat) {
  StreamOptions options;
  options.job = job;
  options.heartbeat = heartbeat;
  return options;
}

}  // namespace

// One channel of this agent. What an earlier one still delivers is dropped.
struct AgentConnection::Connection final : ChannelObserver {
  Connection(AgentConnection& the_line, std::unique_ptr<HostChannel> the_channel, std::string words)
      : line(the_line),
        channel(std::move(the_channel)),
        preamble(line.transport_.greeting),
        first_bytes(std::move(words)),
        resuming(!first_bytes.empty()) {}

  void OnStage(ChannelStage stage) override {
    bool greets = stage == ChannelStage::kRunning && !preamble.over();
    if (!resuming)
      line.observer_.OnHostStage(line.host_, greets ? HostStage::kExec : StageOf(stage));
  }
  void OnBytes(std::string_view bytes) override { line.OnBytes(*this, bytes); }
  void OnWritable() override {
    if (this == line.connection_.get()) line.Flush();
  }
  void OnTrouble(const ChannelEnd& so_far) override {
    if (!resuming)
      line.observer_.OnHostTrouble(line.host_,
                                   {StageOf(so_far.stage), so_far.reason, so_far.no_answer});
  }
  void OnNote(const std::string& text) override { line.observer_.OnHostNote(line.host_, text); }
  void OnEnd(const ChannelEnd& end) override { line.OnEnd(*this, end); }

  AgentConnection& line;
  std::unique_ptr<HostChannel> channel;
  Preamble preamble;
  std::string first_bytes;  // what comes before the stream's, once the preamble is over
  const bool resuming;
  bool over = false;
};

AgentConnection::AgentConnection(AgentConnectionObserver& observer, uint32_t host, uint64_t job,
                                 HostTransport transport, Heartbeat heartbeat)
    : observer_(observer),
      host_(host),
      stream_(StreamOptionsOf(job, heartbeat.every)),
      transport_(std::move(transport)),
      heartbeat_(heartbeat) {
  if (transport_.side_command && heartbeat_.grace > Duration::zero()) resume_key_ = MakeJobKey();
}

AgentConnection::~AgentConnection() = default;

void AgentConnection::Open() {
  stream_.Attach(SteadyNow());
  Connect(std::move(transport_.channel), "");
}

void AgentConnection::OpenAsSuccessor(const AgentPath& there, std::string key,
                                      const TakeOver& first, Duration grace) {
  there_ = there;
  successor_key_ = std::move(key);
  started_ = awaited_ = true;
  stream_.SendControl(EncodeToAgent(first));
  reconnect_.emplace("hvdrun was killed", grace, SteadyNow());
  TryAgain(SteadyNow());
}

void AgentConnection::Connect(std::unique_ptr<HostChannel> channel, std::string first_bytes) {
  connection_ = std::make_unique<Connection>(*this, std::move(channel), std::move(first_bytes));
  connection_->channel->Open(*connection_);
  Flush();
}

// For good: what still arrives from it is ignored.
void AgentConnection::Disconnect() {
  stream_.Detach();
  if (!connection_) return;
  old_.push_back(std::move(connection_));
  if (!old_.back()->over) old_.back()->channel->Kill();
}

void AgentConnection::Send(const ToAgent& message) {
  if (ended_) return;
  if (const auto* begin = std::get_if<BeginGeneration>(&message))
    stream_.set_epoch(begin->generation);
  if (std::holds_alternative<StartJob>(message) || std::holds_alternative<ExamineHost>(message))
    started_ = true;
  if (IsBulk(message)) {
    stream_.SendBulk(EncodeToAgent(message));
  } else {
    stream_.SendControl(EncodeToAgent(message));
  }
  Flush();
}

void AgentConnection::ReturnCredit(size_t count) {
  stream_.ReturnCredit(count);
  Flush();
}

void AgentConnection::Flush() {
  while (connection_) {
    std::string& first = connection_->first_bytes;
    if (!first.empty() && !connection_->preamble.over()) return;
    std::string_view out = feed_           ? feed_->Outgoing()
                           : first.empty() ? stream_.Outgoing()
                                           : std::string_view(first);
    if (out.empty()) return;
    size_t wanted = out.size();
    size_t written = connection_->channel->Write(out);
    if (feed_) {
      feed_->Consume(written);
      if (feed_->Moved(SteadyNow())) observer_.OnHostStage(host_, HostStage::kBundle);
    } else if (first.empty()) {
      stream_.Consume(written);
    } else {
      first.erase(0, written);
    }
    if (written < wanted) return;
  }
}

TimePoint AgentConnection::NextTick() const {
  // While hvdrun is being sent there is no stream.
  TimePoint next = stream_.attached() ? std::min(stream_.NextTick(), next_look_) : next_look_;
  return reconnect_ && !given_up_ ? std::min(next, reconnect_->due()) : next;
}

void AgentConnection::Tick() {
  const TimePoint now = SteadyNow();
  std::erase_if(old_, [](const auto& connection) { return connection->over; });
  if (now >= stream_.NextTick()) stream_.Tick(now);
  Flush();
  if (reconnect_ && !given_up_) TryAgain(now);
  if (now < next_look_) return;
  next_look_ = now + heartbeat_.every;
  LookForSilence();
}

// Silence is counted in our own ticks: after hvdrun itself was stopped for a while, messages that
// arrived meanwhile are read first.
void AgentConnection::LookForSilence() {
  if (ended_ || !started_ || reconnect_) return;  // before that, limits of the stages apply
  const Duration limit = std::chrono::seconds(heartbeat_.limit_seconds);
  const Duration silent = heartbeat_.every * ++silent_looks_;
  if (silent < limit || silent >= limit + heartbeat_.every) return;
  const std::string reason = Format("its agent has been silent for {} s", heartbeat_.limit_seconds);
  if (MayResume()) return Lose(reason);
  left_alone_ = true;
  End(reason);
}

void AgentConnection::OnBytes(Connection& connection, std::string_view bytes) {
  if (&connection != connection_.get()) return;
  silent_looks_ = 0;
  Preamble& preamble = connection.preamble;
  if (preamble.over()) return Receive(bytes);
  if (std::optional<std::string> rest = preamble.Consume(bytes)) {
    if (connection.resuming || std::exchange(feed_, nullptr)) stream_.Attach(SteadyNow());
    if (connection.resuming) {
      Flush();
    } else {
      observer_.OnHostStage(host_, HostStage::kHello);
    }
    return Receive(*rest);
  }
  while (std::optional<std::string> words = preamble.PopSuffix()) ReceiveScript(*words);
  if (preamble.too_long()) Break("its shell says more than an agent would: " + preamble.printed());
}

// The stream's first bytes have been sent already: the script skips them, and the stream begins
// again afterwards.
void AgentConnection::ReceiveScript(std::string_view words) {
  if (std::optional<std::string> sentence = ParseScriptCannot(words)) return Break(*sentence);
  if (std::optional<std::string> what = ParseScriptSkips(words)) {
    if (++skipped_ <= kMostSkipped) observer_.OnHvdrunSkipped(host_, *what);
    return;
  }
  std::optional<ScriptWants> wants = ParseScriptWants(words);
  if (!wants || !transport_.bundles || given_up_) return;
  if (++asked_ > kMostAsked) return Break("it asks for hvdrun again and again");
  stream_.Detach();
  feed_ = std::make_shared<BundleFeed>();
  observer_.OnHostStage(host_, HostStage::kBundle);
  transport_.bundles->Get(wants->packing, [this, feed = std::weak_ptr(feed_)](const auto& bundle) {
    if (!feed.expired()) FeedBundle(bundle);
  });
}

void AgentConnection::FeedBundle(const Result<SharedBundle>& bundle) {
  if (!bundle.ok()) return Break("hvdrun cannot be sent there: " + bundle.status().message());
  feed_->Begin(*bundle);
  Flush();
}

void AgentConnection::Receive(std::string_view bytes) {
  Status status = stream_.Receive(bytes, SteadyNow());
  if (reconnect_ && stream_.greeted()) {
    Duration away = reconnect_->lasted(SteadyNow());
    reconnect_.reset();
    if (std::exchange(successor_key_, {}).empty()) observer_.OnHostBack(host_, away);
  }
  while (std::optional<StreamMessage> message = stream_.Next()) {
    if (Status taken = HandleMessage(message->bytes); !taken.ok()) {
      status = taken;
      break;
    }
  }
  observer_.OnReadOver(host_);
  if (!status.ok()) return Break("its stream is damaged: " + status.message());
  Flush();
}

Status AgentConnection::HandleMessage(std::string_view message) {
  if (std::optional<WorkerOutputView> output = PeekOutput(message)) {
    observer_.OnOutput(host_, *output, message.size());
    return Status::Ok();
  }
  Result<ToDriver> decoded = DecodeToDriver(message);
  if (!decoded.ok()) return decoded.status();
  if (const auto* path = std::get_if<AgentPath>(&*decoded)) there_ = *path;
  if (std::holds_alternative<AgentReady>(*decoded) && !resume_key_.empty()) {
    awaited_ = true;
    auto grace = std::chrono::duration_cast<std::chrono::milliseconds>(heartbeat_.grace);
    Send(AwaitDriver{resume_key_, grace.count()});
  }
  if (std::holds_alternative<AgentGone>(*decoded)) {
    gone_ = true;
    stream_.Acknowledge();
    Flush();
  }
  observer_.OnMessage(host_, std::move(*decoded));
  return Status::Ok();
}

// ---- ends

void AgentConnection::Break(const std::string& reason) {
  broken_ = reason;
  given_up_ = true;
  // Its agent would wait for this driver to return.
  left_alone_ = left_alone_ || (awaited_ && !gone_);
  stream_.Detach();
  if (connection_) return connection_->channel->Close();
  End(reason);
}

void AgentConnection::Cut() {
  if (ended_) return;
  left_alone_ = left_alone_ || ((started_ || awaited_) && !gone_);
  given_up_ = true;
  if (connection_) return connection_->channel->Kill();
  End(reconnect_ ? reconnect_->reason() : "its connection was cut");
}

void AgentConnection::OnEnd(Connection& connection, const ChannelEnd& end) {
  connection.over = true;
  if (&connection != connection_.get()) return EndWhenDisconnected();
  const bool in_script = end.stage == ChannelStage::kRunning && !connection.preamble.over();
  const bool greeted = stream_.greeted() || connection.resuming;
  Disconnect();
  if (gone_) return End("");
  left_alone_ = left_alone_ || end.killed || awaited_;
  if (!greeted && !in_script && end.stage != ChannelStage::kClosed)
    observer_.OnHostStage(host_, StageOf(end.stage));  // the channel knows the stage
  std::string reason = ReasonOf(connection, end);
  if (connection.preamble.printed().starts_with(transport_.no_agent_text) && connection.resuming) {
    left_alone_ = true;
    return End(reconnect_->reason() + "; its agent is not there any more");
  }
  if (MayResume()) return Lose(reason);
  End(reconnect_ && broken_.empty() ? reconnect_->reason() : reason);
}

std::string AgentConnection::ReasonOf(const Connection& connection, const ChannelEnd& end) const {
  std::string reason = !broken_.empty() ? broken_ : end.reason;
  if (reason.empty()) reason = "its agent ended before the job";
  if (broken_.empty() && !connection.preamble.over() && MayBeStartUpFile(end))
    reason += "; does a start-up file of the shell there (.bashrc, .profile) call exit?";
  if (!connection.preamble.over() && !connection.preamble.printed().empty())
    reason += " (its shell says: " + connection.preamble.printed() + ")";
  return reason;
}

// Called once; the last channel may still be closing.
void AgentConnection::End(const std::string& reason) {
  if (end_reason_) return;
  end_reason_ = reason;
  given_up_ = true;
  Disconnect();
  EndWhenDisconnected();
}

void AgentConnection::EndWhenDisconnected() {
  if (!end_reason_ || ended_) return;
  for (const auto& connection : old_) {
    if (!connection->over) return;
  }
  ended_ = true;
  reconnect_.reset();
  observer_.OnHostEnd(host_, *end_reason_);
}

// ---- a lost connection

bool AgentConnection::MayResume() const {
  return !given_up_ && !resume_key_.empty() && !there_.resume_address.empty();
}

void AgentConnection::Lose(const std::string& reason) {
  Disconnect();
  const TimePoint now = SteadyNow();
  silent_looks_ = 0;
  if (reconnect_) {
    return reconnect_->OnFailure(reason, now, std::uniform_real_distribution<double>()(chance_));
  }
  reconnect_.emplace(reason, heartbeat_.grace, now);
  observer_.OnHostAway(host_, reason);
}

void AgentConnection::TryAgain(TimePoint now) {
  if (reconnect_->over(now)) {
    left_alone_ = true;
    return End(reconnect_->LostReason());
  }
  if (now < reconnect_->due()) return;
  if (reconnect_->trying())
    return Lose("no answer within " + SecondsText(ReconnectPolicy::kTryLimit));
  reconnect_->OnTry(now);
  Connect(MakeSideCommand(SideCommand::kResume),
          successor_key_.empty() ? resume_key_ : successor_key_);
}

std::unique_ptr<HostChannel> AgentConnection::MakeSideCommand(SideCommand side_command) const {
  return transport_.side_command && !there_.hvdrun.empty()
             ? transport_.side_command(side_command, there_)
             : nullptr;
}

}  // namespace hvd
