// Error messages of SSH connections: what happened, where, why, and what to try. Without the host's
// name, which the caller adds. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_SSH_REASONS_H_
#define HVD_LAUNCHER_CHANNELS_SSH_SSH_REASONS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "discovery/known_hosts.h"
#include "discovery/ssh_config.h"
#include "launcher/channels/host_channel.h"

namespace hvd {

std::string CannotResolve(const SshConfig& config, const std::string& why);

// One address that was tried, and the errno value that came of it.
// `ssh -G` failed; `errors`: its output on stderr.
std::string CannotReadConfig(std::string_view errors);
// There is no ssh program to read the configuration; `files`: existing configuration files; "" if
// none.
std::string ConfigNotRead(const std::vector<std::string>& files, const std::string& why);

struct ConnectFailure {
  std::string address;  // "10.0.0.1 port 22"
  int error = 0;
};
std::string CannotConnect(const std::vector<ConnectFailure>& failures);

// The server's location for the following messages: its address, or its name and proxy.
struct SshPlace {
  std::string at;            // "10.0.0.1 port 22"
  std::string through;       // describes the proxy; "": none
  std::string proxy_errors;  // the proxy's stderr
};
// The stage made no progress for `seconds`.
std::string TookTooLong(ChannelStage stage, const SshPlace& place, int64_t seconds);
std::string NoSshServer(const SshPlace& place, std::string_view opening);
// Whether a connection that ended before the server's identification, with this output, looks like
// MaxStartups, there or at a jump host.
bool IsCrowded(std::string_view opening, std::string_view proxy_errors);
// The connection ended before the server's identification, `refusals` times.
std::string Refused(const SshPlace& place, std::string_view opening, int refusals);
std::string ConnectionLost(ChannelStage stage, const SshPlace& place, int error,
                           std::string_view libssh2_error);
std::string NoCommonMethod(const SshPlace& place, std::string_view libssh2_error);

// Why the host's key was not accepted; `check` is not a match.
std::string HostKeyRefused(const SshConfig& config, const HostKeyCheck& check,
                           std::string_view key);

struct LoginTrial {
  std::vector<std::string> tried;    // names of rejected keys
  std::vector<std::string> notes;    // keys that could not be tried
  std::vector<std::string> methods;  // offered by the server
  bool cut_off = false;              // the server ended the connection during login
};
std::string LoginRefused(const SshConfig& config, const LoginTrial& trial);

// How the command ended; "": it succeeded. `signal` as in SSH, without SIG; `errors`: tail of its
// stderr.
std::string CommandEnded(int code, std::string_view signal, std::string_view errors);
// Whether this is how a shell reports a missing program.
bool NeverStarted(int code, std::string_view signal, bool wrote_something);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_REASONS_H_
