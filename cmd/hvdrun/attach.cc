// hvdrun attach JOB: the output of a detached job since it was left, then live. Ctrl-C asks whether
// to detach or to stop the job. Ends with the job's exit code.
#include <unistd.h>

#include <array>
#include <csignal>

#include "cmd/hvdrun/verbs.h"
#include "launcher/detached/follow.h"
#include "launcher/output/output.h"

namespace hvd {
namespace {

constexpr int kInterrupted = 130;

// What Ctrl-C is meant to do.
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

int Detached(const LogFollower& follower, int code) {
  VerbLine("attach", "job " + follower.job().name + " continues; hvdrun attach " +
                         follower.job().name + " shows its output from here on");
  return code;
}

int Ended(const DetachedJob& job) {
  if (!job.end->reason.empty()) VerbLine("attach", "job " + job.name + ": " + job.end->reason);
  return job.end->exit_code;
}

int Attach(const DetachedJob& job) {
  const bool person = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  InterruptNote interrupts;
  LogFollower follower(job, ReadShown(job));
  LogPlace written = follower.place();
  for (;;) {
    if (const int signal = interrupts.Pop(); signal != 0) {
      const Choice choice = person && signal == SIGINT ? Ask() : Choice::kDetach;
      (void)interrupts.Pop();
      if (choice == Choice::kDetach) return Detached(follower, person ? 0 : kInterrupted);
      const auto driver = DriverOf(follower.job());
      if (choice == Choice::kStop && driver) SignalProcess(*driver, SIGINT);
    }
    const LogFollower::Step step = follower.Next(STDOUT_FILENO);
    if (follower.place() != written) WriteShown(job, written = follower.place());
    if (step == LogFollower::Step::kBroken) return Detached(follower, 141);
    if (step == LogFollower::Step::kEnded) return Ended(follower.job());
  }
}

}  // namespace

int AttachVerb(const std::vector<std::string>& args) {
  if (args.size() > 1 || (!args.empty() && args[0].starts_with('-')))
    return FailVerb("attach", "takes the name of one detached job; hvdrun ps lists them");
  const Result<DetachedJob> job = FindDetached(args.empty() ? "" : args[0]);
  if (!job.ok()) return FailVerb("attach", job.status().message());
  return Attach(*job);
}

}  // namespace hvd
