#include "launcher/channels/retrying_channel.h"

#include <algorithm>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <optional>
#include <string>
#include <utility>

#include "launcher/channels/late_host.h"

namespace hvd {
namespace {

// A retry that has run for this long has come further than the previous one.
constexpr auto kComesFurther = std::chrono::seconds(1);

}  // namespace

// Outlives the channel while its handlers are queued.
class RetryingChannel::Tries final : public ChannelObserver,
                                     public std::enable_shared_from_this<Tries> {
 public:
  Tries(asio::io_context& io, MakeChannel make, bool servers_come_late)
      : io_(io),
        make_(std::move(make)),
        servers_come_late_(servers_come_late),
        pause_(io),
        further_(io) {}

  void Open(ChannelObserver& observer) {
    observer_ = &observer;
    OpenNext();
  }
  size_t Write(std::string_view bytes) {
    if (over_) return bytes.size();
    const bool behind = again_ < sent_.size();
    const size_t count = inner_ && !behind ? inner_->Write(bytes) : 0;
    if (count < bytes.size()) want_writable_ = true;
    if (!heard_ && count > 0) again_ = sent_.append(bytes.substr(0, count)).size();
    return count;
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
    pause_.cancel();
    further_.cancel();
    inner_.reset();
    old_.reset();
  }

  void OnStage(ChannelStage stage) override {
    const bool early = stage <= ChannelStage::kKeyExchange;
    if (early && tries_ > 0 && !came_further_) {
      held_ = stage;
      return;
    }
    further_.cancel();
    if (observer_ != nullptr) observer_->OnStage(stage);
  }
  void OnBytes(std::string_view bytes) override {
    heard_ = true;
    ForgetSent();
    if (observer_ != nullptr) observer_->OnBytes(bytes);
  }
  void OnWritable() override {
    SendAgain();
    if (again_ == sent_.size() && std::exchange(want_writable_, false) && observer_ != nullptr)
      observer_->OnWritable();
  }
  void OnTrouble(const ChannelEnd& so_far) override {
    if (observer_ != nullptr) observer_->OnTrouble(so_far);
  }
  void OnNote(const std::string& text) override {
    if (observer_ != nullptr && tries_ == 0) observer_->OnNote(text);
  }
  void OnEnd(const ChannelEnd& end) override {
    if (!MayRetry(end, servers_come_late_) || closed_ || heard_ || observer_ == nullptr)
      return EndLater(end);
    further_.cancel();
    // A connection that is closed before the server's first word is as good as none.
    ChannelEnd trouble = end;
    if (!end.no_answer.empty()) trouble.stage = std::min(end.stage, ChannelStage::kConnect);
    observer_->OnTrouble(trouble);
    if (over_) return;
    pause_.expires_after(PauseBeforeRetry(++tries_));
    pause_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error && !self->over_ && !self->closed_) self->OpenNext();
    });
    old_ = std::move(inner_);  // we are in a call of it
  }

 private:
  void OpenNext() {
    old_.reset();
    again_ = 0;
    held_.reset();
    came_further_ = false;
    if (tries_ > 0) {
      further_.expires_after(kComesFurther);
      further_.async_wait([self = shared_from_this()](const asio::error_code& error) {
        if (!error) self->ComeFurther();
      });
    }
    inner_ = make_();
    inner_->Open(*this);
    if (inner_) OnWritable();
  }
  void ComeFurther() {
    came_further_ = true;
    if (held_ && !over_) OnStage(*std::exchange(held_, std::nullopt));
  }
  void SendAgain() {
    while (inner_ && again_ < sent_.size()) {
      const size_t count = inner_->Write(std::string_view(sent_).substr(again_));
      if (count == 0) return;
      again_ += count;
    }
    ForgetSent();
  }
  void ForgetSent() {
    if (!heard_ || again_ < sent_.size()) return;
    sent_ = {};
    again_ = 0;
  }
  void EndLater(const ChannelEnd& end) {
    if (std::exchange(over_, true)) return;
    pause_.cancel();
    further_.cancel();
    asio::post(io_, [self = shared_from_this(), end] {
      if (self->observer_ != nullptr) self->observer_->OnEnd(end);
    });
  }

  asio::io_context& io_;
  MakeChannel make_;
  const bool servers_come_late_;
  asio::steady_timer pause_, further_;
  ChannelObserver* observer_ = nullptr;
  std::unique_ptr<HostChannel> inner_;  // null between two tries
  std::unique_ptr<HostChannel> old_;    // of the last try; its handlers may be queued
  std::optional<ChannelStage>
      held_;          // of a further try, until it is clear that it is more than the last
  std::string sent_;  // before the first byte came
  size_t again_ = 0;  // how much of it this try has received
  int tries_ = 0;     // that failed
  bool came_further_ = false, heard_ = false, closed_ = false, over_ = false;
  bool want_writable_ = false;
};

RetryingChannel::RetryingChannel(asio::io_context& io, MakeChannel make, bool servers_come_late)
    : tries_(std::make_shared<Tries>(io, std::move(make), servers_come_late)) {}

RetryingChannel::~RetryingChannel() { tries_->Forget(); }

void RetryingChannel::Open(ChannelObserver& observer) { tries_->Open(observer); }
size_t RetryingChannel::Write(std::string_view bytes) { return tries_->Write(bytes); }
void RetryingChannel::Close() { tries_->Close(); }
void RetryingChannel::Kill() { tries_->Kill(); }

}  // namespace hvd
