// The known_hosts files on this machine: read once for all hosts that use the same files, and
// appended to when a new key is accepted. discovery/known_hosts.h parses them. One thread.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_KNOWN_HOSTS_FILES_H_
#define HVD_LAUNCHER_CHANNELS_SSH_KNOWN_HOSTS_FILES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/known_hosts.h"
#include "discovery/ssh_config.h"
#include "runtime/base/status.h"

namespace hvd {

class KnownHostsFiles {
 public:
  const KnownHosts& Of(const SshConfig& config);
  // Appends the key to the first of the user's files (0600; creates its folder as 0700).
  Status Accept(const SshConfig& config, std::string_view key);

 private:
  static std::vector<std::string> FilesOf(const SshConfig& config);

  std::map<std::vector<std::string>, KnownHosts> read_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_KNOWN_HOSTS_FILES_H_
