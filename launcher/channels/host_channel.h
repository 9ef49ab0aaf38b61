// HostChannel: a byte stream to `hvdrun agent` on one host, however it got there. Its end is
// reported exactly once, with the stage it was in and a reason.
#ifndef HVD_LAUNCHER_CHANNELS_HOST_CHANNEL_H_
#define HVD_LAUNCHER_CHANNELS_HOST_CHANNEL_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace hvd {

// In this order; a channel leaves out what it does not have.
enum class ChannelStage {
  kResolve,      // the host's name
  kConnect,      // to one of its addresses
  kKeyExchange,  // from its first words to an encrypted connection
  kHostKey,      // is it who it claims to be
  kLogin,        // are we
  kExec,         // starting the agent's program
  kRunning,      // bytes may flow
  kClosed,       // Close was called before the end
};

// From the end of a process's stream to its SIGKILL: the agent ends its workers first.
inline constexpr auto kChannelEndLimit = std::chrono::seconds(4);

struct ChannelEnd {
  ChannelStage stage = ChannelStage::kRunning;
  std::string reason;  // one sentence without the host's name; empty for an agent that ended well
  bool may_pass = false;  // nothing has begun there, and another try may fare better
  // A signal ended the agent's program there, so that perhaps nobody was left to clean up.
  bool killed = false;
};

class ChannelObserver {
 public:
  virtual ~ChannelObserver() = default;
  // On entering each stage up to kRunning, in order (a stage may come again when it is tried
  // again); perhaps from inside Open. The caller of Close gets no kClosed.
  virtual void OnStage(ChannelStage stage) = 0;
  virtual void OnBytes(std::string_view bytes) = 0;
  // After a Write that did not take everything.
  virtual void OnWritable() = 0;
  // The reason that stopped a try that is made again; it is the end when the owner has no more
  // patience.
  virtual void OnTrouble(const ChannelEnd&) {}
  // The text that --verbose shows, without the host's name.
  virtual void OnNote(const std::string&) {}
  // Last call. Nothing of the channel's own processes is left.
  virtual void OnEnd(const ChannelEnd& end) = 0;
};

class HostChannel {
 public:
  virtual ~HostChannel() = default;
  // Begins; once. A failure comes as OnEnd with its stage, later than this call.
  virtual void Open(ChannelObserver& observer) = 0;
  // Takes as many bytes as fit now and returns their number.
  virtual size_t Write(std::string_view bytes) = 0;
  // Closes the stream; the agent ends when it notices, then OnEnd comes.
  virtual void Close() = 0;
  // Ends the agent by force; then OnEnd comes.
  virtual void Kill() = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_HOST_CHANNEL_H_
