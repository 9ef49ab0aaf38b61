// The messages to an ssh-agent and its answers. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_KEYS_AGENT_MESSAGES_H_
#define HVD_LAUNCHER_CHANNELS_SSH_KEYS_AGENT_MESSAGES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

struct AgentKey {
  std::string blob;
  std::string comment;

  bool operator==(const AgentKey&) const = default;
};

inline constexpr size_t kMaxAgentMessage = 256 * 1024;

// With their length in front.
std::string AskForAgentKeys();
// RSA is asked for as SHA-512.
std::string AskAgentToSign(const std::string& blob, std::string_view data);

// The first whole message in `bytes` without its length; nothing while it is incomplete; "" when it
// can be none.
std::optional<std::string> FirstAgentMessage(std::string_view bytes);
// Nothing: the agent refused, or said what makes no sense.
std::optional<std::vector<AgentKey>> ReadAgentKeys(std::string_view message);
// The signature as SSH wants it behind the algorithm's name.
std::optional<std::string> ReadAgentSignature(std::string_view message);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_KEYS_AGENT_MESSAGES_H_
