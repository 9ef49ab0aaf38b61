// hvdrun --detach: the job runs in a process of its own, and this one returns once its workers run.
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "cmd/hvdrun/verbs.h"
#include "discovery/this_machine.h"
#include "launcher/detached/follow.h"
#include "launcher/detached/keeper.h"
#include "launcher/output/output.h"
#include "launcher/output/printed_output.h"
#include "launcher/process/jobs/driver_status.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/spawn.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/printable_text.h"

namespace hvd {
namespace {

constexpr Duration kAskLimit = std::chrono::milliseconds(200);
constexpr Duration kSayEvery = std::chrono::seconds(10);

void Say(const std::string& sentence) { WriteAll(STDERR_FILENO, "hvdrun: " + sentence + "\n"); }

// All workers of the job run; of an elastic job, at least one.
bool WorkersRun(const DetachedJob& job) {
  for (const DriverReply& driver : AskDrivers(kAskLimit)) {
    if (driver.job != job.id || !driver.counts) continue;
    const JobCounts& counts = *driver.counts;
    return counts.alive > 0 && (job.elastic || counts.alive == counts.size);
  }
  return false;
}

// Blocks SIGINT and SIGTERM while the job gets its folder and its processes, so that none is left
// incomplete.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t held;
    ::sigemptyset(&held);
    ::sigaddset(&held, SIGINT);
    ::sigaddset(&held, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &held, &before_);
  }
  ~HeldSignals() { Release(); }
  HeldSignals(const HeldSignals&) = delete;
  const sigset_t& before() const { return before_; }
  void Release() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// The job ended before its workers were seen running.
int EndedEarly(const DetachedJob& job) {
  if (!job.end->reason.empty()) Say(job.end->reason);
  if (job.end->exit_code != 0) {
    Say(Format("job {} failed with exit code {} at its start; hvdrun forget {} removes its output",
               job.name, job.end->exit_code, job.name));
    return job.end->exit_code;
  }
  Say("job " + job.name + " has ended already, with exit code 0");
  return PrintText(job.name + "\n");
}

// Shows what hvdrun prints while the job starts.
int AwaitWorkers(const DetachedJob& started, InterruptNote& interrupts) {
  LocalOutput output(started);
  LogFollower follower(output);
  const TimePoint begun = SteadyNow();
  TimePoint say = begun + kSayEvery;
  for (;;) {
    if (const int signal = interrupts.Pop(); signal != 0) {
      if (const auto driver = DriverOf(output.job())) SignalProcess(*driver, signal);
    }
    const LogFollower::Step step = follower.Next(STDERR_FILENO);
    if (step == LogFollower::Step::kEnded) break;
    if (WorkersRun(started)) {
      Say(Format("job {} runs detached; hvdrun attach {} shows its output", started.name,
                 started.name));
      return PrintText(started.name + "\n");
    }
    if (SteadyNow() < say) continue;
    say += kSayEvery;
    Say(Format("job {} is starting, for {} s", started.name,
               std::chrono::duration_cast<std::chrono::seconds>(SteadyNow() - begun).count()));
  }
  return EndedEarly(output.job());
}

std::string ElsewhereText(const DetachedJob& job) {
  const std::string host = Printable(job.host);
  const bool there = job.host != HostName();
  return Format("job {} was started on {}{}; if that is gone for good, remove {}", job.name,
                there ? host : "this host, but in another container or process namespace",
                there ? ", so ask there: -H " + host : "", job.folder);
}

std::string CommandTyped(const ParsedCommandLine& parsed) {
  std::string text;
  for (const std::string& word : parsed.command) text += (text.empty() ? "" : " ") + word;
  return Printable(text, 400);
}

}  // namespace

Result<std::vector<DetachedJob>> DetachedJobs() {
  Result<std::vector<DetachedJob>> jobs = ReadDetachedJobs(DetachedJobsFolder(GetEnv));
  if (!jobs.ok()) return jobs;
  for (DetachedJob& job : *jobs) (void)Tend(&job);
  return jobs;
}

std::vector<DamagedJob> DamagedJobs() {
  std::vector<DamagedJob> damaged;
  (void)ReadDetachedJobs(DetachedJobsFolder(GetEnv), &damaged);
  return damaged;
}

bool IsAmongDetached(const std::string& name) {
  std::error_code error;
  return !name.empty() && name.find('/') == name.npos &&
         std::filesystem::exists(DetachedJobsFolder(GetEnv) + "/" + name, error);
}

Result<DetachedJob> FindDetached(const std::string& name) {
  std::vector<DamagedJob> damaged;
  const Result<std::vector<DetachedJob>> jobs =
      ReadDetachedJobs(DetachedJobsFolder(GetEnv), &damaged);
  if (!jobs.ok()) return jobs.status();
  Result<DetachedJob> job = DetachedJobNamed(*jobs, name);
  for (const DamagedJob& one : damaged) {
    if (job.ok() || one.name != name) continue;
    return InvalidArgument(one.path + " " + one.reason +
                           (one.removable ? "; hvdrun forget " + name + " removes it" : ""));
  }
  if (!job.ok()) return job;
  // Its files can be read, and it can be stopped, even if no process could be started to keep its
  // output.
  if (Status tended = Tend(&*job); !tended.ok() && !job->end)
    Say("the output of job " + job->name + " is not kept now, and the job waits when 1 MiB of it " +
        "has not been read: " + tended.message());
  if (!job->end && !IsOfThisMachine(*job)) return InvalidArgument(ElsewhereText(*job));
  return job;
}

std::string JobIdFor(const std::string& name) {
  if (name.empty()) return name;
  const Result<DetachedJob> job = FindDetached(name);
  return job.ok() ? job->id : name;
}

int RunDetached(const ParsedCommandLine& parsed,
                const std::function<int(const DetachedJob& job)>& run) {
  const Settings& settings = parsed.settings;
  if (settings.function_channel >= 0)
    return UsageError(
        InvalidArgument("--detach starts a command, not a function of horovod.run()"));
  // The job outlives the caller and must not hold its pipes or files open.
  CloseOtherDescriptors();
  const std::string jobs = DetachedJobsFolder(GetEnv);
  const Result<std::vector<DetachedJob>> old = DetachedJobs();
  if (!old.ok()) return UsageError(old.status());
  ForgetOldJobs(*old, WallSeconds(), settings.detached_keep_seconds);
  HeldSignals held;
  Result<std::string> folder = MakeJobFolder(jobs, NameFor(parsed.command));
  if (!folder.ok()) return UsageError(folder.status());
  DetachedJob job;
  job.folder = *folder;
  job.name = std::filesystem::path(*folder).filename();
  job.id = MakeJobId();
  job.command = CommandTyped(parsed);
  job.directory = WorkingDirectory();
  job.elastic = IsElastic(settings);
  job.mark = MakeOutputMark();
  job.output_limit_bytes = static_cast<uint64_t>(settings.detached_output_limit_bytes);
  const auto absolute = [&](const std::string& path, const char* ours) {
    if (path.empty()) return job.PathOf(ours);
    return (std::filesystem::path(job.directory) / path).lexically_normal().string();
  };
  job.ranks_folder = absolute(settings.output_filename, "ranks");
  job.error_file = absolute(settings.error_file, "error.json");
  if (const std::string note = LogindNote(""); !note.empty()) PrintNotes({note});
  const Status started = StartDetached(&job, held.before(), [&] { return run(job); });
  if (!started.ok()) {
    (void)RemoveDetachedJob(*folder);
    Say("--detach could not start the job: " + started.message());
    return 1;
  }
  InterruptNote interrupts;
  held.Release();
  const Result<DetachedJob> begun = ReadDetachedJob(*folder);
  if (!begun.ok()) {
    Say(*folder + " " + begun.status().message());
    return 1;
  }
  return AwaitWorkers(*begun, interrupts);
}

}  // namespace hvd
