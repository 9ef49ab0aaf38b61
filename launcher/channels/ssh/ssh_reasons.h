// The sentences in which the ways to a host end: what happened, where, because of what, and what to
// try. Without the host's name, which the caller adds. Pure.
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
// There is no ssh program that could be asked; `files`: the configuration files that there are; ""
// without one.
std::string ConfigNotRead(const std::vector<std::string>& files, const std::string& why);

struct ConnectFailure {
  std::string address;  // "10.0.0.1 port 22"
  int error = 0;
};
std::string CannotConnect(const std::vector<ConnectFailure>& failures);

// Where the server is, for the following: its address, or its name and the way to it.
struct SshPlace {
  std::string at;            // "10.0.0.1 port 22"
  std::string through;       // the proxy's words; "" without a proxy
  std::string proxy_errors;  // what it wrote to stderr
};
// Nothing came for so long in this stage.
std::string TookTooLong(ChannelStage stage, const SshPlace& place, int64_t seconds);
std::string NoSshServer(const SshPlace& place, std::string_view opening);
// Whether the end of a connection before the server's first word, with these words, looks like
// MaxStartups, there or at a jump host.
bool IsCrowded(std::string_view opening, std::string_view proxy_errors);
// The connection ended before the server's first word; `refusals`: how many times that happened.
std::string Refused(const SshPlace& place, std::string_view opening, int refusals);
std::string ConnectionLost(ChannelStage stage, const SshPlace& place, int error,
                           std::string_view libssh2_error);
std::string NoCommonMethod(const SshPlace& place, std::string_view libssh2_error);

// Why the host's key is not taken; `check` is no match.
std::string HostKeyRefused(const SshConfig& config, const HostKeyCheck& check,
                           std::string_view key);

struct LoginTrial {
  std::vector<std::string> tried;    // names of keys the server did not take
  std::vector<std::string> notes;    // keys that could not be tried
  std::vector<std::string> methods;  // that the server takes
  bool cut_off = false;              // the server ended the connection while we tried
};
std::string LoginRefused(const SshConfig& config, const LoginTrial& trial);

// How the command ended; "" when it ended well. `signal` as SSH names it, without SIG; `errors`:
// its last output.
std::string CommandEnded(int code, std::string_view signal, std::string_view errors);
// A shell's way to say that there was no such program.
bool NeverStarted(int code, std::string_view signal, bool wrote_something);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_SSH_REASONS_H_
