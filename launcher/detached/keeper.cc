#include "launcher/detached/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "discovery/this_machine.h"
#include "launcher/output/printed_output.h"
#include "launcher/process/jobs/job_place.h"
#include "launcher/process/spawn.h"
#include "runtime/base/clock.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/output_file.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr int kPipeBytes = 1 << 20;
// How long the end of hvdrun may go unnoticed: its descendants may hold the pipe open.
constexpr int kLookEveryMs = 100;
constexpr size_t kEndBytes = 8192;  // of the file `end`, on any file system
constexpr int kRetryEveryMs = 500;

// The lock that the keeper holds as long as it lives; invalid: another process holds it.
UniqueFd LockOf(const DetachedJob& job) {
  UniqueFd lock(::open(job.PathOf("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                       S_IRUSR | S_IWUSR));
  if (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.Reset();
  return lock;
}

// Leaves the terminal and the pipes of the caller; errors are discarded.
void LeaveTerminal() {
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  if (null > STDERR_FILENO) ::close(null);
}

Status RecordEnd(const DetachedJob& job, const DetachedEnd& end) {
  return WriteWholeFile(job.PathOf("end"), DetachedEndJson(end));
}

// On a full disk, uses the reserved space first, then that of old output. If that does not suffice,
// waits for space; until then the job counts as running.
void RecordEndForCertain(const DetachedJob& job, const DetachedEnd& end) {
  ::unlink(job.PathOf("room").c_str());
  while (!RecordEnd(job, end).ok()) {
    const std::vector<LogSegment> segments = SegmentsIn(job.folder);
    if (segments.size() > 1) {
      ::unlink(segments.front().path.c_str());
    } else if (::access(job.folder.c_str(), F_OK) != 0) {
      return;  // it was removed
    } else {
      (void)::poll(nullptr, 0, kRetryEveryMs);
    }
  }
}

// Whether the machine has booted since the job was started.
bool RestartedSince(const DetachedJob& job) {
  const std::optional<JobPlace> here = PlaceHere(), there = ParseJobPlace(job.place);
  return here && there && here->boot != there->boot && job.host == HostName();
}

// Stores the current contents of the pipe in files. False: it is empty.
bool Drain(int pipe, PacketReader& packets, LogWriter& log) {
  static std::array<char, 1 << 16> bytes;
  const ssize_t got = ::read(pipe, bytes.data(), bytes.size());
  if (got <= 0) return false;
  log.Append(packets.Unwrap({bytes.data(), static_cast<size_t>(got)}), WallNanoseconds());
  return true;
}

// Waits for the standby to end with hvdrun: once the end is recorded, nothing of the job runs.
void AwaitStandby(const DetachedJob& job) {
  constexpr int kMostLooks = 100, kLookMs = 10;
  for (int look = 0; look < kMostLooks && DriverOf(job); ++look) (void)::poll(nullptr, 0, kLookMs);
}

// Waits until hvdrun has ended and returns its end. `child`: it is our child.
DetachedEnd WaitForEnd(const DetachedJob& job, int pipe, LogWriter& log, bool child) {
  PacketReader packets(job.mark);
  int status = SIGKILL;
  for (;;) {
    pollfd entry{pipe, POLLIN, 0};
    (void)::poll(&entry, 1, kLookEveryMs);
    const bool idle = !Drain(pipe, packets, log);
    if (idle && (entry.revents & POLLHUP) != 0) (void)::poll(nullptr, 0, kLookEveryMs);
    if (child) {
      if (::waitpid(job.driver, &status, WNOHANG) != job.driver) continue;
      child = false;  // its standby may take over
      if (!ReadExitCode(job)) continue;
    } else if (!idle || DriverOf(job)) {
      continue;
    }
    while (Drain(pipe, packets, log)) {
    }
    AwaitStandby(job);
    if (const std::optional<int> code = ReadExitCode(job)) return {*code, WallSeconds(), ""};
    return EndOfKilled(status, WallSeconds());
  }
}

[[noreturn]] void Keep(const DetachedJob& job, const UniqueFd& pipe, LogWriter& log, bool child) {
  // When a machine shuts down, all processes get a signal: hvdrun ends, and its last output is
  // kept.
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
  RecordEndForCertain(job, WaitForEnd(job, pipe.get(), log, child));
  ::_exit(0);
}

struct Pipe {
  UniqueFd input, output;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("cannot make a pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Reads everything until the other end is closed.
std::string ReadToEnd(const UniqueFd& input) {
  std::string text;
  std::array<char, 1024> bytes;
  for (;;) {
    const ssize_t got = ::read(input.get(), bytes.data(), bytes.size());
    if (got > 0) text.append(bytes.data(), static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return text;
  }
}

// The last action of hvdrun: if its keeper was killed and no verb has been used since, what is in
// the pipe would be lost with this process.
void KeepTheRest(const DetachedJob& job, int code) {
  const UniqueFd lock = LockOf(job);
  if (!lock.valid()) return;  // its keeper lives
  Result<std::unique_ptr<LogWriter>> log = LogWriter::Open(job.folder, job.output_limit_bytes);
  if (!log.ok()) return;
  PacketReader packets(job.mark);
  ::fcntl(job.pipe, F_SETFL, O_NONBLOCK);
  while (Drain(job.pipe, packets, **log)) {
  }
  RecordEndForCertain(job, {code, WallSeconds(), ""});
}

// Becomes hvdrun, with its output in the pipe, once what the job is has been recorded.
[[noreturn]] void RunHere(const DetachedJob& job, const UniqueFd& output, const UniqueFd& gate,
                          const sigset_t& signals, const std::function<int()>& run) {
  if (ReadToEnd(gate).empty()) ::_exit(1);
  ::dup2(output.get(), STDOUT_FILENO);
  ::dup2(output.get(), STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  const int code = run();
  WriteExitCode(job, code);
  KeepTheRest(job, code);
  ::_exit(code);
}

// The keeper's report to the process that detaches: the job is recorded. Otherwise a sentence.
constexpr std::string_view kRecorded = "recorded";

void Report(UniqueFd& to, std::string_view text) {
  (void)!::write(to.get(), text.data(), text.size());
  to.Reset();
}

// In the keeper: starts hvdrun, which closes the keeper's descriptors, and records the job.
Status Record(DetachedJob* job, std::array<UniqueFd*, 2> of_keeper, UniqueFd& output,
              const sigset_t& signals, const std::function<int()>& run) {
  Result<Pipe> gate = MakePipe();
  if (!gate.ok()) return gate.status();
  job->driver = ::fork();
  if (job->driver == 0) {
    for (UniqueFd* fd : of_keeper) fd->Reset();
    gate->output.Reset();
    RunHere(*job, output, gate->input, signals, run);
  }
  output.Reset();
  if (job->driver < 0) return SystemError("cannot start a process", errno);
  if (const auto process = LookAtProcess(job->driver))
    job->driver_start_ticks = process->start_ticks;
  HVD_RETURN_IF_ERROR(PrepareExitCode(*job));
  HVD_RETURN_IF_ERROR(WriteWholeFile(job->PathOf("job"), DetachedJobJson(*job)));
  Report(gate->output, "go");
  return Status::Ok();
}

}  // namespace

DetachedEnd EndOfKilled(int wait_status, int64_t now) {
  DetachedEnd end;
  end.at = now;
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    end.exit_code = kSignalBase + signal;
    end.reason = Format("hvdrun itself was killed by signal {} ({}), and its workers ended with it",
                        signal, ::strsignal(signal));
  } else {
    end.exit_code = WEXITSTATUS(wait_status);
    end.reason = "hvdrun ended without recording its exit code";
  }
  return end;
}

Status StartDetached(DetachedJob* job, const sigset_t& signals, const std::function<int()>& run) {
  UniqueFd lock = LockOf(*job);
  if (!lock.valid()) return SystemError("cannot lock " + job->folder, errno);
  Result<Pipe> pipe = MakePipe(), report = MakePipe();
  if (!pipe.ok() || !report.ok()) return (pipe.ok() ? report : pipe).status();
  (void)::fcntl(pipe->input.get(), F_SETPIPE_SZ, kPipeBytes);
  Result<std::unique_ptr<LogWriter>> log = LogWriter::Open(job->folder, job->output_limit_bytes);
  if (!log.ok()) return log.status();
  HVD_RETURN_IF_ERROR(WriteWholeFile(job->PathOf("room"), std::string(kEndBytes, '\0')));
  job->pipe = pipe->input.get();
  job->started_at = WallSeconds();
  job->host = HostName();
  if (const auto place = PlaceHere()) job->place = JobPlaceText(*place);
  const pid_t keeper = ::fork();
  if (keeper < 0) return SystemError("cannot start a process", errno);
  if (keeper > 0) {
    report->output.Reset();
    const std::string text = ReadToEnd(report->input);
    if (text == kRecorded) return Status::Ok();
    return InvalidArgument(text.empty() ? "the process that keeps the output of the job was killed"
                                        : text);
  }
  LeaveTerminal();
  report->input.Reset();
  const Status recorded = Record(job, {&lock, &report->output}, pipe->output, signals, run);
  if (!recorded.ok()) {
    Report(report->output, recorded.message());
    ::_exit(1);
  }
  Report(report->output, kRecorded);
  Keep(*job, pipe->input, **log, /*child=*/true);
}

Status Tend(DetachedJob* job) {
  const auto reread = [job] {
    Result<DetachedJob> again = ReadDetachedJob(job->folder);
    if (again.ok()) *job = std::move(*again);
    return again.status();
  };
  if (job->end) return Status::Ok();
  const bool restarted = RestartedSince(*job);
  if (!restarted && !IsOfThisMachine(*job)) return Status::Ok();
  UniqueFd lock = LockOf(*job);
  if (!lock.valid()) return Status::Ok();  // its keeper lives
  HVD_RETURN_IF_ERROR(reread());
  if (job->end) return Status::Ok();
  if (restarted || !DriverOf(*job)) {
    DetachedEnd end{1, WallSeconds(), "the machine was restarted while the job ran"};
    const std::optional<int> code = ReadExitCode(*job);
    if (code) {
      end = {*code, WallSeconds(),
             "the last output may be missing: the process that keeps it was killed"};
    } else if (!restarted) {
      end = EndOfKilled(SIGKILL, WallSeconds());
    }
    job->end = end;  // also where the disk is full
    return RecordEnd(*job, end);
  }
  const std::optional<ProcessInfo> driver = DriverOf(*job);
  const std::string path = Format("/proc/{}/fd/{}", driver ? driver->pid : job->driver, job->pipe);
  UniqueFd pipe(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!pipe.valid()) return SystemError("cannot read the output of job " + job->name, errno);
  Result<std::unique_ptr<LogWriter>> log = LogWriter::Open(job->folder, job->output_limit_bytes);
  if (!log.ok()) return log.status();
  const pid_t keeper = ::fork();
  if (keeper < 0) return SystemError("cannot start a process", errno);
  if (keeper > 0) return Status::Ok();
  LeaveTerminal();
  Keep(*job, pipe, **log, /*child=*/false);
}

Status RemoveDamagedJob(const DamagedJob& damaged) {
  if (!damaged.removable) return InvalidArgument(damaged.path + " " + damaged.reason);
  if (IsKept(damaged.path))
    return InvalidArgument(damaged.path + " " + damaged.reason +
                           ", but its job runs; hvdrun ps lists its id, and hvdrun stop ends it");
  return RemoveDetachedJob(damaged.path);
}

void ForgetOldJobs(const std::vector<DetachedJob>& jobs, int64_t now, double seconds) {
  for (const DetachedJob& job : jobs) {
    if (job.end && static_cast<double>(now - job.end->at) > seconds)
      (void)RemoveDetachedJob(job.folder);
  }
}

}  // namespace hvd
