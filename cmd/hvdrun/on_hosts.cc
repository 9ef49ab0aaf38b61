// hvdrun VERB -H HOST ...: runs the verb on another host, over ssh, with its output and its exit
// code. Only hvdrun attach does part of the work on this side, too (attach.cc).
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "discovery/host_spec.h"
#include "launcher/channels/bundle/bundle.h"
#include "launcher/channels/bundle/remote_script.h"
#include "launcher/channels/ssh_command.h"
#include "launcher/detached/detached_job.h"
#include "launcher/output/output.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr uint32_t kConnectSeconds = 10;
constexpr int kCommandNotFound = 127;
constexpr const char* kRemoteVerbs[] = {"attach", "drain", "forget", "logs",
                                        "ps",     "scale", "status", "stop"};

// Looks for this build where `ssh HOST hvdrun` and earlier jobs would find it. A copy at our own
// path is run only if it is the user's own.
constexpr const char* kFindHvdrun =
    "own=$1 build=$2; shift 2; cache=\"${XDG_CACHE_HOME:-$HOME/.cache}/hvdrun/$build/bin/hvdrun\"; "
    "test -O \"$own\" && test -x \"$own\" && exec \"$own\" \"$@\"; "
    "test -O \"$cache\" && test -x \"$cache\" && exec \"$cache\" \"$@\"; "
    "command -v hvdrun >/dev/null && exec hvdrun \"$@\"; "
    "echo \"hvdrun: there is no hvdrun on $(uname -n): neither on PATH nor where jobs put it\" "
    ">&2; "
    "exit 127";

struct RemoteOptions {
  std::string hosts;  // empty: none was named
  std::vector<std::string> args;
  bool incomplete = false;
};

RemoteOptions ParseRemoteOptions(const std::vector<std::string>& args) {
  constexpr std::string_view kWithValue = "--hosts=";
  RemoteOptions options;
  for (size_t at = 0; at < args.size(); ++at) {
    if (args[at] == "-H" || args[at] == "--hosts") {
      options.incomplete = at + 1 == args.size();
      if (!options.incomplete) options.hosts = args[++at];
    } else if (args[at].starts_with(kWithValue)) {
      options.hosts = args[at].substr(kWithValue.size());
    } else {
      options.args.push_back(args[at]);
    }
  }
  return options;
}

void ReadUntilEnd(int fd, std::string* text) {
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got == 0 || (got < 0 && errno != EINTR)) return;
    if (got > 0) text->append(piece.data(), static_cast<size_t>(got));
  }
}

// `output`: receives what it prints; null: to our stdout.
int RunCommand(const std::vector<std::string>& command, std::string* output) {
  int pipe[2] = {-1, -1};
  if (output != nullptr && ::pipe2(pipe, O_CLOEXEC) != 0) return 1;
  UniqueFd from(pipe[0]), to(pipe[1]);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return 1;
  if (child == 0) {
    if (to.valid()) ::dup2(to.get(), STDOUT_FILENO);
    ::execvp(words[0], words.data());
    WriteAll(STDERR_FILENO, std::string("hvdrun: cannot run ssh: ") + std::strerror(errno) + "\n");
    ::_exit(kCommandNotFound);
  }
  to.Reset();
  if (output != nullptr) ReadUntilEnd(from.get(), output);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::vector<std::string> RemoteVerbCommand(const HostSpec& host, const char* verb,
                                           const std::vector<std::string>& args, bool terminal) {
  std::string there = "exec sh -c " + ShellWord(kFindHvdrun) + " hvdrun";
  const Result<std::string> build = InstalledBuildId(OwnPath());
  std::vector<std::string> words = {OwnPath(), build.ok() ? *build : "none", verb};
  words.insert(words.end(), args.begin(), args.end());
  for (const std::string& word : words) there += " " + ShellWord(word);
  SshHost ssh;
  ssh.name = host.name;
  ssh.user = host.user;
  ssh.port = host.port;
  std::vector<std::string> command = SshCommand(ssh, false, there, kConnectSeconds);
  if (terminal) std::ranges::replace(command, "-T", "-t");
  return command;
}

std::optional<int> RunOnHosts(const char* verb, const std::vector<std::string>& args) {
  if (std::ranges::find(kRemoteVerbs, std::string_view(verb)) == std::end(kRemoteVerbs))
    return std::nullopt;
  const RemoteOptions options = ParseRemoteOptions(args);
  if (options.incomplete) return FailVerb(verb, "-H needs a host");
  if (options.hosts.empty()) return std::nullopt;
  const Result<std::vector<HostSpec>> hosts = ParseHostList(options.hosts);
  if (!hosts.ok()) return FailVerb(verb, hosts.status().message());
  const bool list = std::string_view(verb) == "ps";
  if (!list && hosts->size() != 1) return FailVerb(verb, "-H takes one host here");
  if (std::string_view(verb) == "attach")
    return AttachOnHost(options.hosts, hosts->front(), options.args);
  // With a terminal there, Ctrl-C ends the verb on the other host, too.
  const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  const bool one_object = hosts->size() > 1 && std::ranges::count(options.args, "--json") > 0;
  std::vector<std::pair<std::string, std::string>> lists;
  int code = 0;
  for (const HostSpec& host : *hosts) {
    std::string* printed = one_object ? &lists.emplace_back(host.name, "").second : nullptr;
    if (hosts->size() > 1 && !one_object) (void)PrintText("host " + Printable(host.name) + ":\n");
    const int there =
        RunCommand(RemoteVerbCommand(host, verb, options.args, terminal && !one_object), printed);
    if (code == 0) code = there;
  }
  if (one_object) (void)PrintText(ListsOfHostsJson(lists));
  return code;
}

}  // namespace hvd
