// Encodes requests to an ssh-agent and decodes its answers. Pure.
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

// Requests include their length prefix.
std::string AskForAgentKeys();
// For RSA keys, requests SHA-512.
std::string AskAgentToSign(const std::string& blob, std::string_view data);

// The first message in `bytes` without its length; nothing while it is incomplete; "" if invalid.
std::optional<std::string> FirstAgentMessage(std::string_view bytes);
// Nothing: the agent refused, or the answer is malformed.
std::optional<std::vector<AgentKey>> ReadAgentKeys(std::string_view message);
// The signature as SSH encodes it after the algorithm's name.
std::optional<std::string> ReadAgentSignature(std::string_view message);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_KEYS_AGENT_MESSAGES_H_
