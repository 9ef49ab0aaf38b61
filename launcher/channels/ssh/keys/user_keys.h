// The keys to try for a login, in OpenSSH's order: agent keys named in the configuration, the
// agent's other keys, then keys that are only in files. OrderKeys is pure.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_KEYS_USER_KEYS_H_
#define HVD_LAUNCHER_CHANNELS_SSH_KEYS_USER_KEYS_H_

#include <memory>
#include <string>
#include <vector>

#include "discovery/ssh_config.h"
#include "launcher/channels/ssh/keys/agent_messages.h"
#include "launcher/channels/ssh/keys/private_key.h"

namespace hvd {

// An existing identity file of the configuration.
struct IdentityFile {
  std::string path;
  std::string blob;                 // of the public key, if known
  std::shared_ptr<PrivateKey> key;  // nullptr: the agent may have it
  std::string note;          // why it cannot be used without the agent; a clause for a message
  bool certificate = false;  // it has a certificate file
};

// Reads the identity files that exist.
std::vector<IdentityFile> ReadIdentityFiles(const SshConfig& config);

struct LoginKey {
  std::string name;  // for messages: a path, or "the agent's key 'comment'"
  std::string blob;
  std::shared_ptr<PrivateKey> key;  // nullptr: the agent signs
};

struct LoginKeys {
  std::vector<LoginKey> keys;
  std::vector<std::string> notes;  // keys skipped, and why; clauses for a message
  bool skipped_kinds = false;      // certificates or security keys, which the ssh program could use
};

LoginKeys OrderKeys(const std::vector<IdentityFile>& files, const std::vector<AgentKey>& agent,
                    bool identities_only);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_KEYS_USER_KEYS_H_
