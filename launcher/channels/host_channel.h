// HostChannel: a byte stream to `hvdrun agent` on one host, by any transport. Its end is reported
// exactly once, with the stage and a reason.
#ifndef HVD_LAUNCHER_CHANNELS_HOST_CHANNEL_H_
#define HVD_LAUNCHER_CHANNELS_HOST_CHANNEL_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace hvd {

// In this order; a channel skips stages that it does not have.
enum class ChannelStage {
  kResolve,      // the host's name
  kConnect,      // to one of its addresses
  kKeyExchange,  // from its first bytes to an encrypted connection
  kHostKey,      // authenticating the host
  kLogin,        // authenticating the user
  kExec,         // starting the agent's program
  kRunning,      // the stream is open
  kClosed,       // Close was called before the end
};

// From the end of the stream to the agent's SIGKILL: it ends its workers first.
inline constexpr auto kChannelEndLimit = std::chrono::seconds(4);

struct ChannelEnd {
  ChannelStage stage = ChannelStage::kRunning;
  std::string reason;     // one sentence without the host's name; empty: the agent succeeded
  bool may_pass = false;  // transient: nothing was started there, and a retry may succeed
  // The agent was killed by a signal, so cleanup may be missing.
  bool killed = false;
  // Why no server answers at its address, "the connection was refused"; "": one does, or no address
  // was tried.
  std::string no_answer = {};
};

class ChannelObserver {
 public:
  virtual ~ChannelObserver() = default;
  // Called on entering each stage up to kRunning, in order (again after a retry); may be called
  // from inside Open. kClosed is not reported.
  virtual void OnStage(ChannelStage stage) = 0;
  virtual void OnBytes(std::string_view bytes) = 0;
  // There is room again after a Write that did not accept everything.
  virtual void OnWritable() = 0;
  // An attempt failed and will be retried; becomes the end if the owner gives up.
  virtual void OnTrouble(const ChannelEnd&) {}
  // Text for --verbose, without the host's name.
  virtual void OnNote(const std::string&) {}
  // Last call. None of the channel's own processes is left.
  virtual void OnEnd(const ChannelEnd& end) = 0;
};

class HostChannel {
 public:
  virtual ~HostChannel() = default;
  // Call once. A failure is reported by OnEnd with its stage, after this call has returned.
  virtual void Open(ChannelObserver& observer) = 0;
  // Accepts as many bytes as fit now and returns their number.
  virtual size_t Write(std::string_view bytes) = 0;
  // Closes the stream; the agent then ends, and OnEnd is called.
  virtual void Close() = 0;
  // Kills the agent; then OnEnd is called.
  virtual void Kill() = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_HOST_CHANNEL_H_
