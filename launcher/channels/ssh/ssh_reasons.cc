#include "launcher/channels/ssh/ssh_reasons.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "configs/message_text.h"
#include "discovery/ssh_key.h"
#include "launcher/process/process_end.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kShownBytes = 400;

std::string Joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

// The last output of a program, in one line.
std::string LastOutput(std::string_view errors) {
  while (!errors.empty() && static_cast<unsigned char>(errors.back()) <= ' ')
    errors.remove_suffix(1);
  if (errors.size() > kShownBytes) errors.remove_prefix(errors.size() - kShownBytes);
  std::string line;
  for (char c : errors) {
    if (c == '\r') continue;
    line += c == '\n' ? std::string("; ") : std::string(1, c);
  }
  return Printable(line, kShownBytes);
}

std::string FirstLine(std::string_view text) {
  return Quoted(text.substr(0, text.find_first_of("\r\n")));
}

std::string Through(const SshPlace& place) {
  if (place.through.empty()) return "";
  std::string output = LastOutput(place.proxy_errors);
  return " through " + place.through + (output.empty() ? "" : ", which says: " + output);
}

std::string WhatToTry(int error) {
  switch (error) {
    case ECONNREFUSED: return "is sshd running there, and is it the right port?";
    case ETIMEDOUT: return "is the host up, and does no firewall drop what is sent to it?";
    case EHOSTUNREACH:
    case ENETUNREACH: return "is the host up, and is there a route to it?";
    default: return "can you reach it by ssh?";
  }
}

// The name in the form that commands accept.
std::string ForCommand(const KnownHostsName& name) {
  if (name.port == 0 || name.port == 22) return name.host;
  return Format("'[{}]:{}'", name.host, name.port);
}

std::string PortFlag(const SshConfig& config) {
  return config.port == 22 ? "" : Format("-p {} ", config.port);
}

std::string Where(const HostKeyCheck& check) { return Format("{}:{}", check.file, check.line); }

std::string UserFile(const SshConfig& config) {
  return config.user_known_hosts_files.empty() ? "~/.ssh/known_hosts"
                                               : config.user_known_hosts_files.front();
}

}  // namespace

// Messages already name the host as the user did; this adds a different name from the
// configuration.
std::string CannotResolve(const SshConfig& config, const std::string& why) {
  bool renamed = config.hostname != config.host;
  return (renamed ? "its HostName " + Quoted(config.hostname) : std::string("its name")) +
         " cannot be resolved: " + why +
         "; check the spelling, or give it a HostName in ~/.ssh/config";
}

std::string CannotReadConfig(std::string_view errors) {
  return "the ssh configuration of this host cannot be read: " + LastOutput(errors) +
         "; try the same with ssh -G";
}

std::string ConfigNotRead(const std::vector<std::string>& files, const std::string& why) {
  if (files.empty()) return "";
  return Joined(files, " and ") + (files.size() == 1 ? " is" : " are") +
         " not read, because that takes the ssh program: " + why +
         "; install it (openssh-client), or name users, ports and keys to hvdrun itself";
}

std::string CannotConnect(const std::vector<ConnectFailure>& failures) {
  std::string text;
  for (const ConnectFailure& failure : failures) {
    text += (text.empty() ? "no connection to " : ", none to ") + failure.address + ": " +
            std::strerror(failure.error);
  }
  return text + "; " + WhatToTry(failures.empty() ? 0 : failures.front().error);
}

std::string TookTooLong(ChannelStage stage, const SshPlace& place, int64_t seconds) {
  std::string limit = Format(" within {} s", seconds);
  switch (stage) {
    case ChannelStage::kResolve:
      return "its name was not resolved" + limit + "; does the name server answer?";
    case ChannelStage::kConnect: return "no connection to " + place.at + limit + Through(place);
    case ChannelStage::kKeyExchange:
    case ChannelStage::kHostKey:
      return place.at + " took the connection and then did not speak SSH" + limit + Through(place) +
             "; is sshd there, or is it overloaded?";
    case ChannelStage::kLogin:
      return "the login at " + place.at + " was not answered" + limit +
             "; does the ssh-agent wait for you, or the server for a name server?";
    default:
      return "the server at " + place.at + " did not start the agent" + limit +
             "; does the login shell there wait for something?";
  }
}

std::string NoSshServer(const SshPlace& place, std::string_view opening) {
  return "what listens at " + place.at + " is no SSH server: it says " + FirstLine(opening) +
         "; is it the right port?";
}

bool IsCrowded(std::string_view opening, std::string_view proxy_errors) {
  if (!proxy_errors.empty())
    return proxy_errors.find("kex_exchange_identification") != std::string_view::npos;
  return opening.empty() || opening.starts_with("Exceeded MaxStartups");
}

std::string Refused(const SshPlace& place, std::string_view opening, int refusals) {
  std::string says = opening.empty() ? "" : " (it says " + FirstLine(opening) + ")";
  return place.at + " closed the connection before its first word" + says +
         (refusals > 1 ? Format(", {} times", refusals) : "") + Through(place) +
         "; raise MaxStartups in its sshd_config, or does it refuse this machine?";
}

std::string ConnectionLost(ChannelStage stage, const SshPlace& place, int error,
                           std::string_view libssh2_error) {
  std::string why = error != 0 ? std::strerror(error) : "the other side closed it";
  std::string text = "the ssh connection to " + place.at + " ended: " + why + Through(place);
  bool early = stage < ChannelStage::kRunning;
  if (early && error == 0 && !libssh2_error.empty())
    text += " (" + Printable(libssh2_error, kShownBytes) + ")";
  if (error == ETIMEDOUT) text += "; the host or the network to it is gone";
  return text;
}

std::string NoCommonMethod(const SshPlace& place, std::string_view libssh2_error) {
  return "hvdrun's own ssh and the server at " + place.at + " have no algorithm in common (" +
         Printable(libssh2_error, kShownBytes) + "); the ssh program may do better";
}

std::string HostKeyRefused(const SshConfig& config, const HostKeyCheck& check,
                           std::string_view key) {
  KnownHostsName name = NameInKnownHosts(config);
  std::string shown = KeyTypeOf(key) + " key " + Fingerprint(key);
  switch (check.verdict) {
    case HostKeyVerdict::kChanged:
      return "its host key has changed: it shows the " + shown + ", but " + Where(check) +
             " knows another one (" + check.known_type +
             "); if the host was set up anew, run ssh-keygen -R " + ForCommand(name) + " -f " +
             check.file + ", else somebody may be in between";
    case HostKeyVerdict::kRevoked:
      return "its host key is revoked: " + Where(check) + " forbids the " + shown +
             "; give the host a new key";
    case HostKeyVerdict::kAuthorityOnly:
      return "it shows a plain host key, the " + shown + ", but " + Where(check) +
             " wants one that its authority has signed";
    default: break;
  }
  return "its host key is unknown: it shows the " + shown + ", and no known_hosts file has " +
         ForCommand(name) + "; compare that and run ssh-keyscan " + PortFlag(config) +
         config.hostname + " >> " + UserFile(config) + ", or say --ssh-host-keys accept-new";
}

std::string LoginRefused(const SshConfig& config, const LoginTrial& trial) {
  std::string text = "user " + Quoted(config.user) + " may not log in: ";
  if (trial.tried.empty()) {
    text += "there is no key to try";
  } else {
    text += "the server took none of " + Joined(trial.tried, ", ");
  }
  if (!trial.notes.empty()) text += "; not tried: " + Joined(trial.notes, "; ");
  if (trial.cut_off) {
    return text +
           "; then it closed the connection, perhaps after too many keys: name the right "
           "one with IdentityFile and IdentitiesOnly yes in ~/.ssh/config";
  }
  if (!trial.methods.empty()) text += "; it takes " + Joined(trial.methods, ", ");
  bool by_key =
      std::find(trial.methods.begin(), trial.methods.end(), "publickey") != trial.methods.end() ||
      trial.methods.empty();
  if (!by_key) return text + "; hvdrun never asks for passwords: allow keys there";
  return text + "; try ssh-copy-id " + PortFlag(config) + config.user + "@" + config.hostname;
}

std::string CommandEnded(int code, std::string_view signal, std::string_view errors) {
  std::string output = LastOutput(errors);
  std::string last = output.empty() ? "" : "; its last words: " + output;
  if (!signal.empty()) return "the agent was ended by signal SIG" + Printable(signal) + last;
  if (code == 0) return "";
  std::string text = code > kSignalBase
                         ? Format("the agent was ended by signal {}", code - kSignalBase)
                         : Format("the agent ended with exit code {}", code);
  if (code == kCommandNotFound || code == kCommandNotExecutable)
    text = Format("the agent could not be started (exit code {})", code);
  return text + last;
}

bool NeverStarted(int code, std::string_view signal, bool wrote_something) {
  return signal.empty() && !wrote_something &&
         (code == kCommandNotFound || code == kCommandNotExecutable);
}

}  // namespace hvd
