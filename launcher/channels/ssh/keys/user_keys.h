// Which keys to try for a login, in which order: as OpenSSH, those of the agent that the
// configuration names, the agent's others, then what only lies in files. OrderKeys is pure.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_KEYS_USER_KEYS_H_
#define HVD_LAUNCHER_CHANNELS_SSH_KEYS_USER_KEYS_H_

#include <memory>
#include <string>
#include <vector>

#include "discovery/ssh_config.h"
#include "launcher/channels/ssh/keys/agent_messages.h"
#include "launcher/channels/ssh/keys/private_key.h"

namespace hvd {

// The file that was found where the configuration names an identity.
struct IdentityFile {
  std::string path;
  std::string blob;                 // of the public key, where it is known
  std::shared_ptr<PrivateKey> key;  // nullptr: the agent may have it
  std::string note;          // why it cannot be used without the agent; a clause for a message
  bool certificate = false;  // one lies beside it
};

// Those that exist.
std::vector<IdentityFile> ReadIdentityFiles(const SshConfig& config);

struct LoginKey {
  std::string name;  // for messages: a path, or "the agent's key 'comment'"
  std::string blob;
  std::shared_ptr<PrivateKey> key;  // nullptr: the agent signs
};

struct LoginKeys {
  std::vector<LoginKey> keys;
  std::vector<std::string> notes;  // what was left out, and why; clauses for a message
  bool skipped_kinds = false;      // certificates or security keys, which the ssh program could use
};

LoginKeys OrderKeys(const std::vector<IdentityFile>& files, const std::vector<AgentKey>& agent,
                    bool identities_only);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_KEYS_USER_KEYS_H_
