// The user's ssh configuration for one host, from the output of `ssh -G host`, so that ssh itself
// evaluates Host and Match blocks, Include and CanonicalizeHostname. Pure.
#ifndef HVD_DISCOVERY_SSH_CONFIG_H_
#define HVD_DISCOVERY_SSH_CONFIG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

// The values of "~", "%d", "%u", "${NAME}" and the like on this machine.
struct SshLocal {
  std::string home;
  std::string user;
  std::string host_name;  // with its domain, if it has one
  uint32_t user_id = 0;
  std::function<std::optional<std::string>(const std::string& name)>
      variable;  // of the environment; may be empty
};

enum class StrictHostKeys { kYes, kAsk, kAcceptNew, kNo };
enum class SshAddressFamily { kAny, kInet, kInet6 };

struct SshConfig {
  // ---- where to
  std::string host;      // as given to ssh -G
  std::string hostname;  // to resolve and connect to
  uint16_t port = 22;
  std::string user;
  SshAddressFamily address_family = SshAddressFamily::kAny;
  std::string bind_address;
  std::string bind_interface;
  std::optional<uint32_t> connect_timeout_s;
  uint32_t connection_attempts = 1;
  uint32_t server_alive_interval_s = 0;  // 0: off
  uint32_t server_alive_count_max = 3;

  // ---- through what; "" where there is nothing
  std::string proxy_jump;     // as written: "j1,u@j2:2200"
  std::string proxy_command;  // tokens expanded; a command line for a shell
  bool proxy_use_fdpass = false;
  std::string control_path;

  // ---- whether it is the right host
  StrictHostKeys strict_host_keys = StrictHostKeys::kAsk;
  std::string host_key_alias;
  std::vector<std::string> host_key_algorithms;
  std::vector<std::string> user_known_hosts_files;
  std::vector<std::string> global_known_hosts_files;
  std::string known_hosts_command;
  std::string revoked_host_keys;  // a file; as written when it cannot be expanded, so that it is
                                  // not forgotten
  bool hash_known_hosts = false;
  bool no_host_authentication_for_localhost = false;

  // ---- how the bytes are protected, in order of preference; empty: not said
  std::vector<std::string> key_exchange_algorithms;
  std::vector<std::string> ciphers;
  std::vector<std::string> macs;

  // ---- who we are
  bool pubkey_authentication = true;
  bool gssapi_authentication = false;
  bool hostbased_authentication = false;
  std::vector<std::string> preferred_authentications;  // empty: ssh's own order
  std::vector<std::string> pubkey_accepted_algorithms;
  bool identities_only = false;
  std::vector<std::string> identity_files;  // paths, in the order to be tried; they need not exist
  std::vector<std::string> certificate_files;
  std::optional<std::string>
      identity_agent;  // a socket; "": no agent; not said: the one in SSH_AUTH_SOCK
  std::string pkcs11_provider;

  // ---- what the session gets
  std::string remote_command;
  std::vector<std::string> set_env;  // "NAME=value"

  // Unusable entries, one sentence each: `IdentityFile "~/%Z" has the unknown token %Z`.
  std::vector<std::string> ignored;

  bool operator==(const SshConfig&) const = default;
};

// `output` is what `ssh -G` wrote to stdout. The first value of a key wins, except for lists;
// unknown keys are ignored. Not ok: not such output (no hostname, an invalid port).
Result<SshConfig> ParseSshConfig(std::string_view output, const SshLocal& local);

// The name and port of this host in known_hosts; HostKeyAlias has no port (0).
struct KnownHostsName {
  std::string host;
  uint16_t port = 0;

  bool operator==(const KnownHostsName&) const = default;
};
KnownHostsName NameInKnownHosts(const SshConfig& config);

}  // namespace hvd

#endif  // HVD_DISCOVERY_SSH_CONFIG_H_
