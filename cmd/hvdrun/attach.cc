// hvdrun attach JOB: the output of a detached job since it was left, then live. Ctrl-C asks whether
// to detach or to stop the job. Ends with the job's exit code.
//
// With -H HOST the output comes from the hvdrun of that host, over ssh, and is shown here by the
// same loop. That hvdrun hears what was shown (launcher/detached/viewer_protocol.h).
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "cmd/hvdrun/verbs.h"
#include "configs/message_text.h"
#include "launcher/detached/follow.h"
#include "launcher/detached/remote_output.h"
#include "launcher/detached/shown.h"
#include "launcher/detached/viewer_server.h"
#include "launcher/output/output.h"
#include "launcher/process/spawn.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr const char* kForViewer = "--for-viewer";
constexpr int kInterrupted = 130, kReaderLeft = 141, kNoProgram = 127, kSshFailed = 255;
// Time for the last message to a host, and for ssh to end.
constexpr Duration kLeaveLimit = std::chrono::seconds(5);

// What the user wants Ctrl-C to do.
enum class Choice { kDetach, kStop, kGoOn };

Choice Ask() {
  WriteAll(STDERR_FILENO,
           "\nhvdrun attach: d: detach, the job continues; s: stop the job; c: continue to watch "
           "[d] ");
  std::array<char, 256> typed{};
  const ssize_t got = ::read(STDIN_FILENO, typed.data(), typed.size());
  const char key = got > 0 ? typed[0] : 'd';  // a second Ctrl-C interrupts the question
  if (key == 's' || key == 'S') return Choice::kStop;
  return key == 'c' || key == 'C' ? Choice::kGoOn : Choice::kDetach;
}

// How showing the output ended.
struct Look {
  enum class End { kJobOver, kDetached, kReaderGone, kSourceGone };
  End end;
  int code = 0;  // of this process; unknown for kSourceGone
};

Look ShowOutput(OutputSource& source, InterruptNote& interrupts) {
  const bool person = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  LogFollower follower(source);
  for (;;) {
    if (const int signal = interrupts.Pop(); signal != 0) {
      const Choice choice = person && signal == SIGINT ? Ask() : Choice::kDetach;
      (void)interrupts.Pop();
      if (choice == Choice::kDetach) return {Look::End::kDetached, person ? 0 : kInterrupted};
      if (choice == Choice::kStop) source.StopJob();
    }
    const LogFollower::Step step = follower.Next(STDOUT_FILENO);
    if (step == LogFollower::Step::kReaderGone) return {Look::End::kReaderGone, kReaderLeft};
    if (step == LogFollower::Step::kSourceGone) return {Look::End::kSourceGone};
    if (step == LogFollower::Step::kEnded) return {Look::End::kJobOver, source.end().exit_code};
  }
}

// Reports how it ended; `again`: the command that continues it. Returns the exit code.
int ReportEnd(const OutputSource& source, const Look& look, const std::string& again) {
  const std::string job = "job " + Printable(source.job_name());
  if (look.end != Look::End::kJobOver) {
    VerbLine("attach", job + " continues; " + again + " shows its output from here on");
  } else if (!source.end().reason.empty()) {
    VerbLine("attach", job + ": " + Printable(source.end().reason));
  }
  return look.code;
}

int Attach(const DetachedJob& job) {
  ::signal(SIGPIPE, SIG_IGN);  // if the reader is gone, write() says so
  InterruptNote interrupts;
  LocalOutput output(job);
  const Look look = ShowOutput(output, interrupts);
  return ReportEnd(output, look, "hvdrun attach " + job.name);
}

// ---- -H HOST

// ssh in a session of its own, because Ctrl-C is handled here.
class SshProcess {
 public:
  explicit SshProcess(pid_t pid) : pid_(pid) {}
  SshProcess(const SshProcess&) = delete;
  ~SshProcess() {
    if (!code_) (void)Wait(SteadyNow());
  }
  // Its exit code. Kills it if it has not ended by `limit`.
  int Wait(TimePoint limit) {
    int status = 0;
    while (!code_) {
      const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended == pid_)
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      else if (ended < 0 && errno != EINTR)
        code_ = kSshFailed;
      else if (SteadyNow() >= limit)
        ::kill(pid_, SIGKILL);
      if (!code_) (void)::poll(nullptr, 0, 1);
    }
    return *code_;
  }

 private:
  const pid_t pid_;
  std::optional<int> code_;
};

struct SshPipes {
  UniqueFd ours_in, ours_out, its_in, its_out;
  bool Make() {
    int down[2], up[2];
    if (::pipe2(down, O_CLOEXEC) != 0) return false;
    its_in.Reset(down[0]);
    ours_out.Reset(down[1]);
    if (::pipe2(up, O_CLOEXEC) != 0) return false;
    ours_in.Reset(up[0]);
    its_out.Reset(up[1]);
    return true;
  }
};

// The position from which output is to be shown: where this machine or another one stopped.
LogPlace BeginOf(const JobThere& job, std::optional<ShownRecord>* own) {
  Result<ShownRecord> record = OwnShownRecord(DetachedJobsFolder(GetEnv), job.id);
  LogPlace from = job.shown;
  if (record.ok()) {
    if (const LogPlace here = record->Read(); here.offset > from.offset) from = here;
    if (record->Grow(from)) {
      *own = std::move(*record);
      return from;
    }
  }
  VerbLine("attach",
           "this machine cannot record what it shows (" +
               (record.ok() ? std::strerror(errno) : record.status().message()) +
               "); if the connection breaks, the last lines before that may be shown again");
  return from;
}

// Reports to the host what was shown. False: the host may not have received it.
bool LeaveHost(RemoteOutput& output, SshProcess& ssh, InterruptNote& interrupts) {
  const TimePoint limit = SteadyNow() + kLeaveLimit;
  while (!output.Leave()) {
    if (SteadyNow() >= limit || interrupts.Pop() != 0) {
      (void)ssh.Wait(SteadyNow());
      return false;
    }
  }
  return ssh.Wait(limit) == 0;
}

int ConnectionGone(const RemoteOutput& output, const std::string& host, const std::string& again) {
  const std::string why = output.trouble().empty() ? "the connection to " + host + " broke"
                                                   : "what comes from " + host +
                                                         " is not understood: " + output.trouble();
  return FailVerb("attach",
                  why + "; job " + Printable(output.job_name()) + " does not depend on it, and " +
                      again + " shows its output from here on",
                  kSshFailed);
}

}  // namespace

int AttachOnHost(const std::string& typed, const HostSpec& host,
                 const std::vector<std::string>& args) {
  std::vector<std::string> words = args;
  words.push_back(kForViewer);
  SshPipes pipes;
  if (!pipes.Make()) return FailVerb("attach", std::strerror(errno), 1);
  ::signal(SIGPIPE, SIG_IGN);  // the same, and of ssh that has ended
  InterruptNote interrupts;
  SpawnRequest request;
  request.argv = RemoteVerbCommand(host, "attach", words, /*terminal=*/false);
  request.environment = Environment();
  request.directory = WorkingDirectory();
  const SpawnOutcome started = SpawnProgram(request, {.stdin_fd = pipes.its_in.get(),
                                                      .stdout_fd = pipes.its_out.get(),
                                                      .stderr_fd = STDERR_FILENO,
                                                      .dies_with_us = false});
  if (started.pid == 0) return FailVerb("attach", "cannot run ssh: " + started.reason, kNoProgram);
  SshProcess ssh(started.pid);
  pipes.its_in.Reset();
  pipes.its_out.Reset();
  RemoteOutput output(std::move(pipes.ours_in), std::move(pipes.ours_out));

  RemoteOutput::Opening opening = RemoteOutput::Opening::kWaits;
  while (opening == RemoteOutput::Opening::kWaits) {
    if (interrupts.Pop() != 0) return kInterrupted;
    opening = output.Open();
  }
  const std::string name = Printable(typed);
  if (opening == RemoteOutput::Opening::kBroken) {
    const int code = ssh.Wait(SteadyNow() + kLeaveLimit);  // it has said why
    if (output.trouble().empty() && code != 0) return code;
    return FailVerb("attach",
                    "what hvdrun on " + name + " says is not understood: " +
                        (output.trouble().empty() ? "it is another version" : output.trouble()),
                    1);
  }
  const std::string again = "hvdrun attach " + Printable(output.job_name()) + " -H " + name;
  std::optional<ShownRecord> own;
  const LogPlace from = BeginOf(output.job(), &own);
  output.Begin(from, std::move(own));
  const Look look = ShowOutput(output, interrupts);
  if (look.end == Look::End::kSourceGone) return ConnectionGone(output, name, again);
  if (LeaveHost(output, ssh, interrupts)) output.ForgetOwnRecord();
  return ReportEnd(output, look, again);
}

int AttachVerb(const std::vector<std::string>& all_args) {
  std::vector<std::string> args = all_args;
  const bool for_viewer = std::erase(args, kForViewer) > 0;
  if (args.size() > 1 || (!args.empty() && args[0].starts_with('-')))
    return FailVerb("attach", "takes the name of one detached job; hvdrun ps lists them");
  const Result<DetachedJob> job = FindDetached(args.empty() ? "" : args[0]);
  if (!job.ok()) return FailVerb("attach", job.status().message());
  if (!for_viewer) return Attach(*job);
  const Status served = ServeViewer(*job, STDIN_FILENO, STDOUT_FILENO);
  return served.ok() ? 0 : FailVerb("attach", served.message(), 1);
}

}  // namespace hvd
