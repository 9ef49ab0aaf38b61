#include "runtime/bootstrap/adopted_agent_connector.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime/base/env.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/hex_text.h"
#include "runtime/base/text/number_text.h"
#include "runtime/net/namespaces.h"
#include "runtime/net/world_secret.h"

namespace hvd {
namespace {

// Each failed attempt means that another rank won, or that an agent is ending. On a busy machine
// the winner may be off its core for long: after the first quick attempts, each one comes a
// millisecond later.
constexpr int kQuickElections = 100, kMaxElections = 20'000;

void AwaitElection(int lost) {
  if (lost < kQuickElections) {
    ::sched_yield();
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// If a launcher does not name its job, it is identified by the process that started the ranks: the
// creator of their PMI socket, else their parent. A pid alone could be reused.
std::string StarterOfThisProcess() {
  pid_t starter = ::getppid();
  ucred maker{};
  socklen_t length = sizeof maker;
  const int socket = ParseWhole<int>(GetEnv("PMI_FD").value_or("")).value_or(-1);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &maker, &length) == 0 && maker.pid > 0)
    starter = maker.pid;
  std::string text = std::to_string(starter);
  std::ifstream file("/proc/" + text + "/stat");
  std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string field;
  constexpr int kStartTime = 20;  // after the name
  for (int i = 0; i < kStartTime && fields >> field; ++i) {
  }
  return text + " " + field;
}

// <prefix>/lib/libhvd.so -> <prefix>/bin/hvdrun. In a wheel the library is part of the package: of
// an environment, <prefix>/lib/pythonX.Y/site-packages/horovod/lib, or in a folder of its own (pip
// install --target), <prefix>/horovod/lib.
std::string HvdrunBesideThisLibrary() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&HvdrunBesideThisLibrary), &info) == 0) return "";
  std::string library = info.dli_fname;
  size_t slash = library.rfind('/');
  std::string folder = slash == std::string::npos ? "." : library.substr(0, slash);
  const std::string beside = folder + "/../bin/hvdrun";
  if (!folder.ends_with("/horovod/lib")) return beside;
  for (const char* way : {"/../../bin/hvdrun", "/../../../../../bin/hvdrun"}) {
    if (::access((folder + way).c_str(), X_OK) == 0) return folder + way;
  }
  return beside;
}

ExternalRank Named(ExternalRank rank) {
  if (rank.job.empty()) rank.job = "started by " + StarterOfThisProcess();
  return rank;
}

}  // namespace

std::string AdoptedJobId(const ExternalRank& rank) {
  std::string text = rank.job + "\n" + rank.host + "\n" + OurNamespaces();
  return HexOf(HashOf(text)) + HexOf(HashOf(text, kHashStart ^ 0x9e3779b97f4a7c15U));
}

std::string AdoptAddress(const std::string& job_id, uint32_t user) {
  return Format("hvd-adopt-{}-{}", user, job_id);
}

std::vector<std::string> AdoptArguments(const ExternalRank& rank, const std::string& job_id) {
  std::vector<std::string> arguments = {"agent",
                                        "--adopt",
                                        job_id,
                                        "--slots",
                                        std::to_string(rank.local_size),
                                        "--size",
                                        std::to_string(rank.size)};
  if (!rank.host.empty()) arguments.insert(arguments.end(), {"--host", rank.host});
  if (!rank.store.empty()) arguments.insert(arguments.end(), {"--store", rank.store});
  return arguments;
}

AdoptedAgentConnector::AdoptedAgentConnector(ExternalRank rank, std::string hvdrun)
    : rank_(Named(std::move(rank))),
      hvdrun_(hvdrun.empty() ? HvdrunBesideThisLibrary() : std::move(hvdrun)),
      job_id_(AdoptedJobId(rank_)),
      address_(AdoptAddress(job_id_, ::geteuid())) {}

Status AdoptedAgentConnector::Introduce(int socket) const {
  LinkHello hello;
  hello.slot = rank_.local_rank;
  hello.pid = static_cast<uint32_t>(::getpid());
  hello.job_key = secret_.empty() ? job_id_ : secret_;
  hello.rank = rank_.rank;
  hello.size = rank_.size;
  Status sent = SendLink(socket, hello);
  // One rank of the host sends it.
  const std::vector<RankRun>& runs = rank_.layout;
  for (size_t at = 0; sent.ok() && rank_.local_rank == 0 && at < runs.size();
       at += kMaxRunsPerMessage) {
    const size_t end = std::min(runs.size(), at + kMaxRunsPerMessage);
    sent = SendLink(socket, LinkLayout{0, {&runs[at], runs.data() + end}});
  }
  return sent;
}

// Once per process: ranks that meet through a server send it everything they know, unless they
// share a secret.
void AdoptedAgentConnector::WarnOfOpenKey() const {
  static std::once_flag once;
  if (!secret_.empty() || rank_.rank != 0 || rank_.store.empty() || rank_.local_size == rank_.size)
    return;
  std::call_once(once, [this] {
    LogWarning(
        "the key by which the ranks of this job know each other between hosts can be read "
        "in the key-value server at " +
        rank_.store + " by anybody who reaches it, because " + rank_.launcher +
        " gives its ranks no secret; set " + kSecretFile +
        " to a file with one, the same on all hosts");
  });
}

Result<UniqueFd> AdoptedAgentConnector::Open() {
  Result<std::string> secret = FindWorldSecret();
  if (!secret.ok()) return secret.status();
  secret_ = std::move(*secret);
  WarnOfOpenKey();
  for (int election = 0; election < kMaxElections; ++election) {
    Result<UniqueFd> socket = ConnectLinkIfAny(address_);
    if (!socket.ok()) return socket;
    if (socket->valid()) {
      const Status peer = CheckPeerNamespaces(socket->get());
      if (!peer.ok() && peer.code() != Code::kInProgress) return peer;
      if (peer.ok() && Introduce(socket->get()).ok()) return socket;
      AwaitElection(election);  // the agent is ending, or has not taken over from a rank that ended
      continue;
    }
    Result<UniqueFd> listener = ListenLinkIfFree(address_);
    if (!listener.ok()) return listener;
    if (!listener->valid()) {
      AwaitElection(election);  // the winner is between bind and listen
      continue;
    }
    if (Status started = StartAgent(std::move(*listener)); !started.ok()) return started;
  }
  return Aborted("the agent of this host could not be reached at @" + address_ +
                 "; is it being killed again and again?");
}

// The process started here starts the agent and exits, so that the agent is not a child of this
// rank.
Status AdoptedAgentConnector::StartAgent(UniqueFd listener) const {
  std::vector<std::string> arguments = AdoptArguments(rank_, job_id_);
  std::vector<char*> argv = {const_cast<char*>(hvdrun_.c_str())};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, listener.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  int error = ::posix_spawn(&pid, hvdrun_.c_str(), &files, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  const std::string who = rank_.launcher + " started this rank, and " + hvdrun_ + ", which ";
  if (error != 0) {
    return Aborted(
        SystemError(who + "is to be the agent of this host, cannot be run", error).message() +
        "; set HVD_HVDRUN to the path of hvdrun");
  }
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended < 0 || status == 0) return Status::Ok();  // a script may reap all its children
  return Aborted(
      Format("{}is to be the agent of this host, ended at once with status {}; is it of the same "
             "release as libhvd.so?",
             who, WIFEXITED(status) ? WEXITSTATUS(status) : status));
}

}  // namespace hvd
