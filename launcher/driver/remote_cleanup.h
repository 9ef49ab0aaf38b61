// RemoteCleanup: ends what is left of a job on a host that is lost, by a side command over a
// separate connection (side_command.h). A stopped agent neither ends nor notices that its driver is
// gone, and its warden may be stopped, too; SSH to that host usually still works. If it does not,
// the agent is cut off and ends its workers itself.
//
// One thread, the channel's.
#ifndef HVD_LAUNCHER_DRIVER_REMOTE_CLEANUP_H_
#define HVD_LAUNCHER_DRIVER_REMOTE_CLEANUP_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/channels/host_channel.h"
#include "runtime/base/clock.h"

namespace hvd {

class RemoteCleanup final : public ChannelObserver {
 public:
  // The limits for a host that does not answer, which is the usual case, and for one that does.
  static constexpr Duration kReachLimit = std::chrono::seconds(4);
  static constexpr Duration kLimit = std::chrono::seconds(8);

  // `on_over` is called once, from the channel's last call: nothing of the channel is left, and
  // reason() has the outcome.
  RemoteCleanup(std::unique_ptr<HostChannel> channel, TimePoint now, std::function<void()> on_over);

  void Open() { channel_->Open(*this); }
  // Gives up a cleanup that has exceeded its limit. Call at due() or later.
  void Tick(TimePoint now);
  TimePoint due() const { return over_ || cut_ ? TimePoint::max() : due_; }
  bool over() const { return over_; }
  // After the end; empty: nothing of the job is left there.
  const std::string& reason() const { return reason_; }

  void OnStage(ChannelStage stage) override;
  void OnBytes(std::string_view) override {}
  void OnWritable() override {}
  void OnEnd(const ChannelEnd& end) override;

 private:
  std::unique_ptr<HostChannel> channel_;
  TimePoint began_, due_;
  std::function<void()> on_over_;
  bool cut_ = false, over_ = false;
  std::string reason_;
};

// The cleanups of a job, which run concurrently with each other and with the end of the job.
class RemoteCleanups {
 public:
  // Begins one. `on_over` gets the reason, as RemoteCleanup has it.
  void Start(std::unique_ptr<HostChannel> channel, TimePoint now,
             std::function<void(const std::string& reason)> on_over);
  bool all_over() const;
  // As due() and Tick of a RemoteCleanup, for all of them.
  TimePoint NextTick() const;
  void Tick(TimePoint now);

 private:
  std::vector<std::unique_ptr<RemoteCleanup>> cleanups_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_REMOTE_CLEANUP_H_
