// HostLine: one host as the driver sees it: the channel to its agent, what a shell says in it first, the stream, and
// the heartbeat. Turns the channel's bytes into messages and tells an observer what comes; what that means for a job is
// the observer's business.
//
// Owns the channel; the observer outlives it. One thread, the channel's: the observer hears everything on it, perhaps
// from inside Open, and may call back from there.
#ifndef HVD_LAUNCHER_HOST_LINE_H_
#define HVD_LAUNCHER_HOST_LINE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/host_channel.h"
#include "launcher/host_stages.h"
#include "launcher/messages.h"
#include "launcher/preamble.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/net/stream.h"

namespace hvd {

struct HostWay {
  std::unique_ptr<HostChannel> channel;
  // What comes before the agent's first byte, after whatever a shell says; empty: nothing does.
  std::string greeting;
};

// An agent speaks at least once per heartbeat; one that has its part of a job and is silent for the limit is lost.
struct Heartbeat {
  Duration every = std::chrono::seconds(2);
  int limit_seconds = 0;
};

// Of many hosts: each says which one it is.
class HostLineObserver {
 public:
  virtual ~HostLineObserver() = default;
  virtual void OnHostStage(uint32_t host, HostStage stage) = 0;
  // A worker's output, which took so many bytes of the stream's credit. The view is gone after the call.
  virtual void OnOutput(uint32_t host, const WorkerOutputView& output, size_t message_bytes) = 0;
  // Any other message.
  virtual void OnMessage(uint32_t host, ToDriver message) = 0;
  // After the messages that came at once.
  virtual void OnReadOver(uint32_t host) = 0;
  // Last call. `reason` is one sentence without the host's name; empty when the agent had said that it is done.
  virtual void OnHostEnd(uint32_t host, const std::string& reason) = 0;
};

class HostLine final : public ChannelObserver {
 public:
  // `job` tells this agent's stream from others.
  HostLine(HostLineObserver& observer, uint32_t host, uint64_t job, HostWay way,
           Heartbeat heartbeat);

  void Open();
  // Goes nowhere once the host has ended.
  void Tell(const ToAgent& message);
  // So many bytes of OnOutput's messages were dealt with: the agent may send as many again.
  void ReturnCredit(size_t count);
  // Call at NextTick() or later.
  void Tick();
  TimePoint NextTick() const { return std::min(stream_.NextTick(), next_look_); }
  // Ends the agent by force.
  void Cut() { channel_->Kill(); }
  // Gives the host up, with a reason of our own.
  void Break(const std::string& reason);

  void OnStage(ChannelStage stage) override;
  void OnBytes(std::string_view bytes) override;
  void OnWritable() override { Flush(); }
  void OnEnd(const ChannelEnd& end) override;

 private:
  void Flush();
  void Receive(std::string_view bytes);
  Status TakeMessage(std::string_view message);
  void LookForSilence();
  std::string ReasonOf(const ChannelEnd& end) const;

  HostLineObserver& observer_;
  uint32_t host_;
  Stream stream_;
  std::unique_ptr<HostChannel> channel_;
  Preamble preamble_;
  Heartbeat heartbeat_;
  bool started_ = false;  // the agent has its part of the job
  bool gone_ = false;     // the agent said that it is done
  bool ended_ = false;
  int silent_looks_ = 0;
  TimePoint next_look_ = SteadyNow();
  std::string broken_;  // why this side gave the stream up
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_HOST_LINE_H_
