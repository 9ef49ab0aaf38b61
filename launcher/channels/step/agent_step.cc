#include "launcher/channels/step/agent_step.h"

#include <asio/post.hpp>
#include <utility>

#include "launcher/channels/bundle/remote_script.h"
#include "launcher/channels/own_calls.h"
#include "launcher/overlay/dial/invitation.h"
#include "launcher/overlay/dial/sealed_pump.h"
#include "launcher/process/jobs/job_id.h"
#include "runtime/base/log.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr Duration kStepHandshakeLimit = std::chrono::seconds(5);
// From the close of a channel to the end of its connection: the agent ends its workers first.
constexpr Duration kStepCloseLimit = std::chrono::seconds(4);
// Time to wait, after the end of a connection, for the scheduler's output about it.
constexpr Duration kWordsLimit = std::chrono::seconds(1);

MeshConnectorOptions DoorOptions(const std::string& key) {
  MeshConnectorOptions options;
  options.identity = {key, kDialGeneration, kDriverPeer};
  options.connect_timeout = options.handshake_timeout = kStepHandshakeLimit;
  options.name = [](uint32_t host) { return Format("the agent of host {}", host); };
  options.session_keys = true;
  return options;
}

}  // namespace

// The channel of one host.
class AgentStep::Member final : public HostChannel {
 public:
  Member(std::shared_ptr<AgentStep> step, StepHost host)
      : step_(std::move(step)), host_(std::move(host)), later_(step_->io_) {}
  ~Member() override { step_->OnMemberGone(*this); }

  const StepHost& host() const { return host_; }
  // Its connection is open or still being made.
  bool open() const { return !line_over_; }
  bool waits_for_agent() const { return observer_ != nullptr && !pump_ && !line_over_; }

  void Open(ChannelObserver& observer) override {
    observer_ = &observer;
    observer_->OnStage(ChannelStage::kConnect);
    step_->OnMemberOpen(*this);
  }

  size_t Write(std::string_view bytes) override {
    if (line_over_) return bytes.size();
    return pump_ ? pump_->Write(bytes) : 0;
  }

  void Close() override {
    if (closed_ || line_over_) return;
    closed_ = true;
    if (!pump_) return EndOfLine(ChannelEnd{ChannelStage::kClosed, ""});
    pump_->FinishWriting();
    later_.After(kStepCloseLimit, [this] { EndOfLine(ChannelEnd{ChannelStage::kClosed, ""}); });
  }

  void Kill() override {
    if (reported_) return;
    const ChannelStage stage = pump_ ? ChannelStage::kRunning : ChannelStage::kExec;
    const ChannelEnd end{closed_ ? ChannelStage::kClosed : stage, "it was ended by force"};
    if (line_over_ && end_) return;
    EndOfLine(end, /*by_force=*/true);
  }

  // Handles a line of the step about this host.
  void OnLine(const std::string& text) {
    printed_ += text.empty() ? AgentGreeting(AgentId()) : TextLine(text);
    if (!text.empty()) return;
    later_.After(step_->options_.patience, [this] {
      step_->FallBack(*this, "its agent was started and did not connect to hvdrun in time");
    });
  }

  void Run(SealedLine line) {
    later_.Cancel();
    pump_ = std::make_unique<SealedPump>(
        step_->io_, std::move(line),
        BytePumpHandlers{[this](std::string_view bytes) { OnBytes(bytes); },
                         [this] { observer_->OnWritable(); }, [this] { OnLineEnd(); }});
    observer_->OnStage(ChannelStage::kRunning);
    if (step_->options_.greets) observer_->OnBytes(Greeted());
    if (!line_over_) observer_->OnWritable();
  }

  // The connection is over. Without an end, waits for the step's output about this host.
  void EndOfLine(std::optional<ChannelEnd> end, bool by_force = false) {
    later_.Cancel();
    if (pump_) pump_->Close();
    const bool new_end = !std::exchange(line_over_, true);
    if (end) end_ = std::move(end);
    if (new_end || by_force) step_->OnMemberOver(by_force);
    ReportIfMay();
  }

  // Handles the step's output about this host, and its end.
  void OnStepOutput(const std::string& printed) {
    if (end_ || !pump_) return;
    if (auto end = step_->options_.program.read_output(printed, host_.name))
      EndOfLine(std::move(end));
  }
  void OnStepEnd() {
    if (!end_) end_ = EndBy(step_->end_);
    EndOfLine(std::nullopt);
  }
  // The last channel of a step waits for its program to end.
  void ReportIfMay() {
    if (!end_ || !line_over_ || reported_ || (!step_->over_ && !step_->AnyOpen())) return;
    reported_ = true;
    later_.Cancel();
    later_.Post([this] {
      const ChannelEnd end = *end_;
      observer_->OnEnd(end);
    });
  }

 private:
  std::string AgentId() const { return AgentJobId(step_->options_.job_id, host_.number); }
  // As the script prints it: the greeting followed by `text`.
  std::string TextLine(const std::string& text) const {
    std::string line = AgentGreeting(AgentId());
    line.pop_back();
    return line + " " + text + "\n";
  }
  // The connection may be faster than the scheduler is in forwarding a line.
  std::string Greeted() const {
    const std::string greeting = AgentGreeting(AgentId());
    return printed_.ends_with(greeting) ? printed_ : printed_ + greeting;
  }
  ChannelEnd EndBy(CommandEnd step) const {
    step.connected = pump_ != nullptr;
    ChannelEnd end = step_->options_.program.read_end(step, host_.name);
    end.may_pass = pump_ == nullptr;
    if (pump_ && !pump_->trouble().empty()) end.reason = pump_->trouble();
    return end;
  }
  void OnBytes(std::string_view bytes) {
    if (!closed_) observer_->OnBytes(bytes);
  }
  void OnLineEnd() {
    if (closed_) return EndOfLine(ChannelEnd{ChannelStage::kClosed, ""});
    EndOfLine(std::nullopt);
    if (end_) return;
    OnStepOutput(step_->end_.printed);
    if (end_) return;
    later_.After(kWordsLimit, [this] {
      end_ = EndBy(step_->end_);
      if (end_->reason.empty()) end_->reason = "its connection to hvdrun was closed";
      ReportIfMay();
    });
  }

  const std::shared_ptr<AgentStep> step_;
  const StepHost host_;
  ChannelObserver* observer_ = nullptr;
  OwnCalls later_;
  std::string printed_;               // by the step, for this host
  std::unique_ptr<SealedPump> pump_;  // none: its agent has not connected
  std::optional<ChannelEnd> end_;     // once it is known
  bool closed_ = false, line_over_ = false, reported_ = false;
};

AgentStep::AgentStep(asio::io_context& io, const Clock& clock, AgentStepOptions options,
                     std::shared_ptr<LocalFamily> family)
    : io_(io), clock_(clock), options_(std::move(options)), family_(std::move(family)) {}

AgentStep::~AgentStep() = default;

std::unique_ptr<HostChannel> AgentStep::Join(StepHost host) {
  return std::make_unique<Member>(shared_from_this(), std::move(host));
}

AgentStep::Member* AgentStep::Find(uint32_t host) const {
  const auto at = members_.find(host);
  return at == members_.end() ? nullptr : at->second;
}

bool AgentStep::AnyOpen() const {
  for (const auto& [host, member] : members_) {
    if (member->open()) return true;
  }
  return false;
}

// ---- the start

void AgentStep::OnMemberOpen(Member& member) {
  members_[member.host().number] = &member;
  if (started_) return FallBack(member, "its step has begun without it");
  if (!std::exchange(asked_, true)) asio::post(io_, [self = shared_from_this()] { self->Start(); });
}

void AgentStep::Start() {
  started_ = true;
  std::vector<StepHost> hosts;
  for (const auto& [number, member] : members_) {
    if (member->open()) hosts.push_back(member->host());
  }
  if (hosts.empty()) {
    over_ = true;
    for (auto& [number, member] : members_) member->ReportIfMay();
    return;
  }
  Result<MeshListener> listener = options_.listen();
  if (!listener.ok()) {
    over_ = true;
    for (const StepHost& host : hosts)
      FallBack(*Find(host.number), "hvdrun cannot listen: " + listener.status().message());
    return;
  }
  const Invitation invitation{options_.job_id, MakeJobKey(), listener->record};
  unsent_ = InvitationText(invitation);
  door_ = std::make_unique<ConnectorLoop>(io_, clock_, DoorOptions(invitation.key),
                                          std::move(*listener),
                                          static_cast<MeshConnectorOwner&>(*this));
  command_ = std::make_unique<CommandChannel>(
      io_, options_.program.command(hosts),
      [this](const CommandEnd& end) {
        end_ = end;
        return ChannelEnd{};
      },
      family_, [this](const std::string& printed) { OnCommandOutput(printed); });
  command_->Open(*this);
  SendInvitation();
}

void AgentStep::SendInvitation() { unsent_.erase(0, command_->Write(unsent_)); }

// ---- lines and connections

void AgentStep::OnBytes(std::string_view bytes) {
  lines_.Add(bytes);
  while (std::optional<StepLine> line = lines_.Next()) {
    const std::optional<uint32_t> host = HostOfAgent(options_.job_id, line->agent_job_id);
    Member* member = host ? Find(*host) : nullptr;
    if (member == nullptr || !member->waits_for_agent()) continue;
    if (ParseScriptWants(line->text) || ParseScriptCannot(line->text)) {
      FallBack(*member, "");  // its own step meets its requests
    } else if (auto reason = ParseUnconnected(line->text)) {
      FallBack(*member, "its agent did not reach hvdrun: " + *reason);
    } else {
      member->OnLine(line->text);
    }
  }
}

void AgentStep::OnCommandOutput(const std::string& printed) {
  end_.printed = printed;
  const auto self = shared_from_this();
  const std::map<uint32_t, Member*> all = members_;
  for (const auto& [number, member] : all) {
    if (Find(number) == member) member->OnStepOutput(printed);
  }
}

void AgentStep::Connected(uint32_t peer, UniqueFd socket, const MeshGreeting& greeting) {
  Member* member = Find(peer);
  if (member == nullptr || !member->waits_for_agent()) return;  // closes it
  member->Run(LineOf(std::move(socket), greeting.keys, greeting.incoming));
}

// ---- the end

// Ends its channel; the owner makes another one. `why` is empty if there is nothing to report.
void AgentStep::FallBack(Member& member, const std::string& why) {
  if (!why.empty() && !std::exchange(warned_, true))
    LogWarning("the common step of all hosts is of no use for host " + member.host().name +
               ", because " + why +
               "; such a host gets a step of its own, which takes longer; look for a firewall "
               "between the hosts, or name the network interface with --network-interfaces");
  member.EndOfLine(ChannelEnd{ChannelStage::kExec, why, /*may_pass=*/true});
}

// When the last member is over, its program ends: by itself, soon, or by force.
void AgentStep::OnMemberOver(bool by_force) {
  if (AnyOpen()) return;
  if (door_) door_->Close();
  if (!command_) return;
  by_force ? command_->Kill() : command_->Close();
}

void AgentStep::OnMemberGone(const Member& member) {
  if (Find(member.host().number) == &member) members_.erase(member.host().number);
}

void AgentStep::OnEnd(const ChannelEnd& end) {
  const auto self = shared_from_this();
  over_ = true;
  if (!end.reason.empty()) end_.printed += end.reason;  // it could not be started
  const std::map<uint32_t, Member*> all = members_;
  for (const auto& [number, member] : all) {
    if (Find(number) == member) member->OnStepEnd();
  }
  asio::post(io_, [self] {});  // called from the program's channel
}

}  // namespace hvd
