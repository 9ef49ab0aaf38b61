// Any bytes as what an ssh-agent answers: refused, or keys and a signature that lie within the
// message.
#include "launcher/channels/ssh/keys/agent_messages.h"
#include "launcher/channels/ssh/keys/ssh_bytes.h"
#include "test/fuzz/seeds.h"

namespace {
using namespace hvd;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::string blob = SshWriter().String("ssh-ed25519").String(std::string(32, 'k')).Release();
  std::string keys = "\x0c" + SshWriter().Number(1).String(blob).String("me").Release();
  std::string signature = SshWriter().String("ssh-ed25519").String(std::string(64, 's')).Release();
  std::string rsa = SshWriter().String("rsa-sha2-512").String(std::string(256, 's')).Release();
  WriteSeeds(*argc, *argv,
             {SshWriter().String(keys).Release(),
              SshWriter().String("\x0e" + SshWriter().String(signature).Release()).Release(),
              SshWriter().String("\x0e" + SshWriter().String(rsa).Release()).Release(),
              SshWriter().String("\x05").Release(), std::string("\xff\xff\xff\xff\x0c", 5)});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::optional<std::string> message = FirstAgentMessage(bytes);
  if (!message) return 0;
  Must(message->size() <= size);
  if (std::optional<std::vector<AgentKey>> keys = ReadAgentKeys(*message)) {
    size_t held = 0;
    for (const AgentKey& key : *keys) held += key.blob.size() + key.comment.size();
    Must(held <= message->size());
  }
  if (std::optional<std::string> signature = ReadAgentSignature(*message))
    Must(signature->size() <= message->size());
  return 0;
}
