#include "launcher/channels/ssh_command.h"

#include <sys/wait.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "configs/message_text.h"
#include "launcher/channels/command_end.h"
#include "launcher/channels/late_host.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr int kSshFailed = 255;

// The destination argument of ssh.
std::string LoginText(const SshHost& host) {
  return (host.port == 0 ? "" : Format("-p {} ", host.port)) +
         (host.user.empty() ? "" : host.user + "@") + host.name;
}

// Replaces {login} and {name}.
std::string Filled(std::string text, const SshHost& host) {
  for (const auto& [mark, value] :
       {std::pair<std::string, std::string>{"{login}", LoginText(host)}, {"{name}", host.name}}) {
    if (size_t at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), value);
  }
  return text;
}

// Programs whose verb `exec` starts a program in a container, and no shell: what goes between the
// container and a line for a shell.
constexpr std::pair<std::string_view, std::string_view> kContainerPrograms[] = {
    {"kubectl", "-- sh -c"}, {"oc", "-- sh -c"},   {"docker", "sh -c"},
    {"podman", "sh -c"},     {"nerdctl", "sh -c"},
};

// "": the program of these words takes the line itself, as ssh does.
std::string_view BeforeProgram(const std::vector<std::string>& words) {
  if (std::ranges::find(words, "exec") == words.end()) return "";
  const std::string_view name = std::string_view(words[0]).substr(words[0].rfind('/') + 1);
  const auto* found =
      std::ranges::find(kContainerPrograms, name, [](const auto& row) { return row.first; });
  return found == std::end(kContainerPrograms) ? "" : found->second;
}

constexpr std::string_view kUnresolved = "Could not resolve hostname";

struct ErrorMeaning {
  const char* text;  // of ssh
  ChannelStage stage;
  const char* reason;
  const char* advice;
};

// OpenSSH's messages, of all versions since 7; the first match applies.
constexpr ErrorMeaning kMeanings[] = {
    {kUnresolved.data(), ChannelStage::kResolve, "no address is known for this name",
     "check the spelling, /etc/hosts and the name server"},
    {"Connection refused", ChannelStage::kConnect, "the connection was refused",
     "does sshd run there, and on this port?"},
    {"No route to host", ChannelStage::kConnect, "there is no route to it",
     "is the host up and in a network that this one reaches?"},
    {"Network is unreachable", ChannelStage::kConnect, "its network is unreachable",
     "is it in a network that this host reaches?"},
    {"timed out", ChannelStage::kConnect, "no answer came",
     "is the host up, and does a firewall let the port of ssh through?"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", ChannelStage::kHostKey,
     "its host key is not the one in known_hosts",
     "somebody may listen in; if the host was installed anew, remove the old key: ssh-keygen -R "
     "{name}"},
    {"revoked", ChannelStage::kHostKey, "its host key is revoked", "ask who runs the host"},
    {"Host key verification failed", ChannelStage::kHostKey,
     "its host key is not known, and nothing here may ask you",
     "log in once by hand and compare the key, or use --ssh-host-keys accept-new; by hand: ssh "
     "{login}"},
    {"Permission denied", ChannelStage::kLogin, "no login without a password or a passphrase",
     "put your public key there (ssh-copy-id), or load it into ssh-agent (ssh-add); it must work "
     "without a prompt: ssh -o BatchMode=yes {login} true"},
    {"Too many authentication failures", ChannelStage::kLogin,
     "too many keys were offered before the right one",
     "name the key: --ssh-identity-file; to see which are offered: ssh -v {login}"},
    {"kex_exchange_identification", ChannelStage::kKeyExchange,
     "it closed the connection before it said who it is",
     "is it an SSH server, and does it take so many logins at once (MaxStartups)?"},
    {"Connection reset by peer", ChannelStage::kConnect,
     "it closed the connection before it said who it is", "is it an SSH server?"},
    {"Bad configuration option", ChannelStage::kResolve,
     "ssh does not understand its configuration",
     "look at the line that it names, in ~/.ssh/config"},
    {"banner exchange", ChannelStage::kKeyExchange, "it did not say who it is",
     "is it an SSH server, and is it overloaded?"},
};

}  // namespace

std::vector<std::string> SshCommand(const SshHost& host, bool accept_new_keys,
                                    const std::string& remote_command, uint32_t connect_seconds) {
  std::vector<std::string> command = {"ssh", "-T", "-x", "-o", "BatchMode=yes"};
  auto option = [&](const std::string& text) { command.insert(command.end(), {"-o", text}); };
  option(Format("ConnectTimeout={}", connect_seconds));
  option("ServerAliveInterval=2");
  option("ServerAliveCountMax=5");
  option("ClearAllForwardings=yes");
  option("LogLevel=ERROR");
  option("RemoteCommand=none");  // since OpenSSH 7.6; ours would be refused beside one of the
                                 // configuration
  if (!host.config_file.empty()) command.insert(command.end(), {"-F", host.config_file});
  if (accept_new_keys) option("StrictHostKeyChecking=accept-new");
  if (host.port != 0) command.insert(command.end(), {"-p", std::to_string(host.port)});
  if (!host.user.empty()) command.insert(command.end(), {"-l", host.user});
  if (!host.identity_file.empty()) command.insert(command.end(), {"-i", host.identity_file});
  command.insert(command.end(), {"--", host.name, remote_command});
  return command;
}

std::vector<std::string> RshAgentCommand(const std::string& agent, const std::string& host,
                                         const std::string& remote_command) {
  std::istringstream stream(agent);
  std::vector<std::string> command;
  for (std::string word; stream >> word;) command.push_back(word);
  const std::string_view before_program = BeforeProgram(command);
  command.push_back(host);
  if (!before_program.empty()) {
    std::istringstream words{std::string(before_program)};
    for (std::string word; words >> word;) command.push_back(word);
  }
  command.push_back(remote_command);
  return command;
}

namespace {

// The name that ssh, or the ssh of a jump host, could not resolve; "" for other messages.
std::string_view UnresolvedName(std::string_view printed) {
  const size_t at = printed.find(kUnresolved);
  if (at == std::string_view::npos) return "";
  std::string_view name = printed.substr(at + kUnresolved.size());
  name.remove_prefix(std::min<size_t>(1, name.size()));
  return name.substr(0, name.find(": "));
}

// ssh had logged in, so a server is there, and the command may have begun.
bool LostAfterLogin(const std::string& printed) {
  return printed.find("Read from remote host") != std::string::npos ||
         printed.find("client_loop: ") != std::string::npos;
}

// Why no server answers, as ChannelEnd::no_answer.
std::string NoAnswer(const ErrorMeaning& meaning, const std::string& printed) {
  const bool closes = printed.find("Connection closed") != std::string::npos ||
                      printed.find("Connection reset") != std::string::npos ||
                      printed.find("Broken pipe") != std::string::npos;
  const bool silent = meaning.stage == ChannelStage::kConnect ||
                      (meaning.stage == ChannelStage::kKeyExchange && closes);
  return silent ? meaning.reason : "";
}

}  // namespace

ChannelEnd ReadSshEnd(const SshHost& host, const CommandEnd& end) {
  ChannelStage stage = end.connected ? ChannelStage::kRunning : ChannelStage::kExec;
  bool own_failure = WIFEXITED(end.wait_status) && WEXITSTATUS(end.wait_status) == kSshFailed;
  if (WIFSIGNALED(end.wait_status)) {
    return {end.connected ? stage : ChannelStage::kConnect,
            Format("ssh was ended by signal {}", WTERMSIG(end.wait_status))};
  }
  if (!own_failure) return EndOfAgentIn(stage, end);
  if (end.connected) {
    std::string output = LastOutput(end.printed);
    return {stage, "the connection was lost" + (output.empty() ? "" : ": " + output)};
  }
  if (LostAfterLogin(end.printed))
    return {stage, "the connection was lost after the login: " + LastOutput(end.printed)};
  for (const ErrorMeaning& meaning : kMeanings) {
    if (end.printed.find(meaning.text) == std::string::npos) continue;
    bool may_pass =
        meaning.stage == ChannelStage::kResolve && MayResolveLater(UnresolvedName(end.printed));
    return {meaning.stage, std::string(meaning.reason) + "; " + Filled(meaning.advice, host),
            may_pass, /*killed=*/false, NoAnswer(meaning, end.printed)};
  }
  return {ChannelStage::kConnect,
          "ssh failed: " + LastOutput(end.printed) + "; try it by hand: ssh -v " + LoginText(host)};
}

ChannelEnd ReadRshAgentEnd(const std::string& agent, const CommandEnd& end) {
  if (end.connected) return EndOfAgentIn(ChannelStage::kRunning, end);
  std::string output = LastOutput(end.printed);
  std::string how = WIFSIGNALED(end.wait_status)
                        ? Format("was ended by signal {}", WTERMSIG(end.wait_status))
                        : Format("ended with exit code {}", WEXITSTATUS(end.wait_status));
  return {ChannelStage::kExec, Quoted(agent) + " " + how + " before the agent said a word" +
                                   (output.empty() ? "" : ": " + output)};
}

}  // namespace hvd
