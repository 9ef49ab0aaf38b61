// ScriptedChannel: a HostChannel whose far end is a function in the test: bytes in, bytes out.
#ifndef HVD_TEST_CONTRACT_LAUNCHER_SCRIPTED_CHANNEL_H_
#define HVD_TEST_CONTRACT_LAUNCHER_SCRIPTED_CHANNEL_H_

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <functional>
#include <string>
#include <utility>

#include "launcher/channels/host_channel.h"

namespace hvd {

class ScriptedChannel final : public HostChannel {
 public:
  using FarEnd = std::function<std::string(std::string_view)>;

  // `room`: how many bytes one Write takes at most.
  ScriptedChannel(asio::io_context& io, FarEnd far_end, size_t room = SIZE_MAX)
      : io_(io), far_end_(std::move(far_end)), room_(room) {}

  void FailToStart(std::string reason) { start_failure_ = std::move(reason); }
  // The far end dies.
  void Die(const std::string& reason, bool killed = false) {
    End(ChannelStage::kRunning, reason, killed);
  }

  void Open(ChannelObserver& observer) override {
    observer_ = &observer;
    observer_->OnStage(ChannelStage::kExec);
    if (!start_failure_.empty()) return End(ChannelStage::kExec, start_failure_);
    observer_->OnStage(ChannelStage::kRunning);
    Deliver(far_end_(""));
  }
  size_t Write(std::string_view bytes) override {
    if (ended_) return bytes.size();
    size_t taken = std::min(bytes.size(), room_);
    Deliver(far_end_(bytes.substr(0, taken)));
    if (taken < bytes.size()) {
      asio::post(io_, [this] {
        if (!ended_) observer_->OnWritable();
      });
    }
    return taken;
  }
  void Close() override { End(ChannelStage::kClosed, ""); }
  void Kill() override { End(ChannelStage::kRunning, "killed"); }

 private:
  void Deliver(std::string bytes) {
    if (bytes.empty()) return;
    asio::post(io_, [this, bytes = std::move(bytes)] {
      if (!ended_) observer_->OnBytes(bytes);
    });
  }
  void End(ChannelStage stage, const std::string& reason, bool killed = false) {
    if (std::exchange(ended_, true)) return;
    asio::post(io_,
               [this, end = ChannelEnd{stage, reason, false, killed}] { observer_->OnEnd(end); });
  }

  asio::io_context& io_;
  FarEnd far_end_;
  size_t room_;
  std::string start_failure_;
  ChannelObserver* observer_ = nullptr;
  bool ended_ = false;
};

}  // namespace hvd

#endif  // HVD_TEST_CONTRACT_LAUNCHER_SCRIPTED_CHANNEL_H_
