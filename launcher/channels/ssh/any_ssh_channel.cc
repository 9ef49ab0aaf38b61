#include "launcher/channels/ssh/any_ssh_channel.h"

#include <asio/post.hpp>
#include <utility>

#include "launcher/channels/ssh/ssh_facts.h"
#include "launcher/channels/ssh/ssh_method.h"

namespace hvd {

// Outlives the channel while its handlers are queued.
class AnySshChannel::Choice final : public ChannelObserver,
                                    public std::enable_shared_from_this<Choice> {
 public:
  Choice(std::shared_ptr<SshHub> hub, SshHost host, std::string command,
         UnknownHostKeys unknown_keys, MakeSshProgramChannel make_program_channel)
      : hub_(std::move(hub)),
        host_(std::move(host)),
        command_(std::move(command)),
        unknown_keys_(unknown_keys),
        make_program_channel_(std::move(make_program_channel)) {}

  void Open(ChannelObserver& observer) {
    observer_ = &observer;
    OnStage(ChannelStage::kResolve);
    AskSshConfig(hub_, host_, [weak = weak_from_this()](Result<SshConfig> config) {
      if (auto self = weak.lock()) self->Choose(std::move(config));
    });
  }
  size_t Write(std::string_view bytes) {
    if (over_) return bytes.size();
    if (!inner_) want_writable_ = true;
    return inner_ ? inner_->Write(bytes) : 0;
  }
  void Close() {
    closed_ = true;
    inner_ ? inner_->Close() : EndLater({ChannelStage::kClosed, ""});
  }
  void Kill() {
    closed_ = true;
    inner_ ? inner_->Kill() : EndLater({ChannelStage::kResolve, "it was given up"});
  }
  void Forget() {
    over_ = true;
    observer_ = nullptr;
    inner_.reset();
    libssh2_ = nullptr;
  }

  void OnStage(ChannelStage stage) override {
    // The request for the configuration has already begun this stage.
    bool begun = stage == ChannelStage::kResolve && std::exchange(resolving_, true);
    if (observer_ != nullptr && !begun) observer_->OnStage(stage);
  }
  void OnBytes(std::string_view bytes) override {
    if (observer_ != nullptr) observer_->OnBytes(bytes);
  }
  void OnWritable() override {
    if (observer_ != nullptr) observer_->OnWritable();
  }
  void OnTrouble(const ChannelEnd& so_far) override {
    if (observer_ != nullptr) observer_->OnTrouble(so_far);
  }
  void OnEnd(const ChannelEnd& end) override {
    std::string why = libssh2_ != nullptr ? std::exchange(libssh2_, nullptr)->ssh_might() : "";
    if (why.empty() || closed_) return EndLater(end);
    // Called from the inner channel, so it is destroyed later.
    asio::post(hub_->io(), [self = shared_from_this(), why] { self->OpenProgram(why); });
  }

 private:
  void Choose(Result<SshConfig> config) {
    if (over_) return;
    if (!config.ok()) return EndLater({ChannelStage::kResolve, config.status().message()});
    SshFacts facts = LookUpFacts(*config, hub_->known_hosts().Of(*config));
    SshChoice choice = ChooseSshMethod(*config, facts);
    if (choice.method == SshMethod::kSshProgram) return OpenProgram(choice.why);
    if (!config->connect_timeout_s && host_.connect_seconds > 0)
      config->connect_timeout_s = host_.connect_seconds;
    SshRequest request{std::move(*config), host_.config_file, command_, unknown_keys_};
    auto channel = std::make_unique<SshChannel>(hub_, std::move(request));
    libssh2_ = channel.get();
    OpenInner(std::move(channel));
  }
  void OpenProgram(const std::string& why) {
    if (over_) return;
    if (observer_ != nullptr) observer_->OnNote("the ssh program goes there, because " + why);
    OpenInner(make_program_channel_(host_, why));
  }
  void OpenInner(std::unique_ptr<HostChannel> channel) {
    inner_ = std::move(channel);
    inner_->Open(*this);
    // Retries a write that was held back; it may then wait inside.
    if (std::exchange(want_writable_, false)) OnWritable();
  }
  void EndLater(const ChannelEnd& end) {
    if (std::exchange(over_, true)) return;
    asio::post(hub_->io(), [self = shared_from_this(), end] {
      if (self->observer_ != nullptr) self->observer_->OnEnd(end);
    });
  }

  std::shared_ptr<SshHub> hub_;
  SshHost host_;
  std::string command_;
  UnknownHostKeys unknown_keys_;
  MakeSshProgramChannel make_program_channel_;
  ChannelObserver* observer_ = nullptr;
  std::unique_ptr<HostChannel> inner_;
  SshChannel* libssh2_ = nullptr;  // inner_, while it is one
  bool resolving_ = false, closed_ = false, over_ = false, want_writable_ = false;
};

AnySshChannel::AnySshChannel(std::shared_ptr<SshHub> hub, SshHost host, std::string command,
                             UnknownHostKeys unknown_keys,
                             MakeSshProgramChannel make_program_channel)
    : choice_(std::make_shared<Choice>(std::move(hub), std::move(host), std::move(command),
                                       unknown_keys, std::move(make_program_channel))) {}

AnySshChannel::~AnySshChannel() { choice_->Forget(); }

void AnySshChannel::Open(ChannelObserver& observer) { choice_->Open(observer); }
size_t AnySshChannel::Write(std::string_view bytes) { return choice_->Write(bytes); }
void AnySshChannel::Close() { choice_->Close(); }
void AnySshChannel::Kill() { choice_->Kill(); }

}  // namespace hvd
