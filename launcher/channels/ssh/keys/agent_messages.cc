#include "launcher/channels/ssh/keys/agent_messages.h"

#include "discovery/ssh_key.h"
#include "launcher/channels/ssh/keys/private_key.h"
#include "launcher/channels/ssh/keys/ssh_bytes.h"

namespace hvd {
namespace {

constexpr uint8_t kRequestIdentities = 11, kIdentitiesAnswer = 12;
constexpr uint8_t kSignRequest = 13, kSignResponse = 14;
constexpr uint32_t kRsaSha512Flag = 4;
constexpr uint32_t kMostKeys = 4096;
constexpr size_t kLengthBytes = 4;

std::string Framed(const std::string& message) { return SshWriter().String(message).Release(); }

}  // namespace

std::string AskForAgentKeys() { return Framed(SshWriter().Byte(kRequestIdentities).Release()); }

std::string AskAgentToSign(const std::string& blob, std::string_view data) {
  uint32_t flags = KeyTypeOf(blob) == kRsaKey ? kRsaSha512Flag : 0;
  return Framed(SshWriter().Byte(kSignRequest).String(blob).String(data).Number(flags).Release());
}

std::optional<std::string> FirstAgentMessage(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return std::nullopt;
  SshReader reader(bytes);
  uint32_t length = reader.Number();
  if (length == 0 || length > kMaxAgentMessage) return "";
  if (bytes.size() < kLengthBytes + length) return std::nullopt;
  return std::string(reader.Bytes(length));
}

std::optional<std::vector<AgentKey>> ReadAgentKeys(std::string_view message) {
  SshReader reader(message);
  if (reader.Byte() != kIdentitiesAnswer) return std::nullopt;
  uint32_t count = reader.Number();
  if (count > kMostKeys) return std::nullopt;
  std::vector<AgentKey> keys;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    std::string blob(reader.String());
    keys.push_back({std::move(blob), std::string(reader.String())});
  }
  if (!reader.ok()) return std::nullopt;
  return keys;
}

std::optional<std::string> ReadAgentSignature(std::string_view message) {
  SshReader reader(message);
  if (reader.Byte() != kSignResponse) return std::nullopt;
  SshReader signature(reader.String());
  signature.String();  // the algorithm's name
  std::string bytes(signature.String());
  if (!reader.ok() || !signature.ok()) return std::nullopt;
  return bytes;
}

}  // namespace hvd
