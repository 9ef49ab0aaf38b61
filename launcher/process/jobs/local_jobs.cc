#include "launcher/process/jobs/local_jobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>

#include "configs/message_text.h"
#include "launcher/process/jobs/driver_status.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/local_family.h"
#include "launcher/process/proc_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr size_t kMaxCommandShown = 120;
constexpr Duration kAnswerLimit = std::chrono::milliseconds(500);

std::string ProcName(pid_t pid, const char* name) { return Format("{}/{}", pid, name); }

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    size_t end = std::min(text.find('\0'), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string Program(pid_t pid) {
  char path[PATH_MAX] = {};
  ssize_t length = ::readlink(("/proc/" + ProcName(pid, "exe")).c_str(), path, sizeof path - 1);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "";
}

int64_t AgeSeconds(const ProcessInfo& process) {
  double uptime = std::strtod(ReadProcFile("uptime").c_str(), nullptr);
  double started =
      static_cast<double>(process.start_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<int64_t>(std::max(0.0, uptime - started));
}

std::string CommandOf(pid_t pid) {
  std::string command;
  for (const std::string& word : Words(ReadProcFile(ProcName(pid, "cmdline")))) {
    command += (command.empty() ? "" : " ") + word;
  }
  return Printable(command, kMaxCommandShown);
}

std::string AgeText(int64_t seconds) {
  return Format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

// Workers are the children of the agent, which is the child of the warden, which is the driver's.
void CountRanks(const std::vector<ProcessInfo>& all, pid_t warden, JobHere& job) {
  for (const ProcessInfo& agent : all) {
    if (agent.parent != warden) continue;
    for (const ProcessInfo& worker : all) {
      if (worker.parent != agent.pid || worker.state == 'Z') continue;
      const std::string environment = ReadProcFile(ProcName(worker.pid, "environ"));
      std::optional<std::string> size = VariableIn(environment, "HOROVOD_SIZE");
      if (!size) continue;
      ++job.ranks_alive;
      job.size = ParseWhole<uint32_t>(*size).value_or(job.size);
      if (!job.part || job.ranks_alive > 1) continue;
      job.id = VariableIn(environment, "TORCHELASTIC_RUN_ID").value_or(job.id);
      job.command = CommandOf(worker.pid);
    }
  }
}

const ProcessInfo* Find(const std::vector<ProcessInfo>& all, pid_t pid) {
  auto found = std::find_if(all.begin(), all.end(),
                            [pid](const ProcessInfo& process) { return process.pid == pid; });
  return found == all.end() ? nullptr : &*found;
}

// A process started by a driver on this machine has this mark. Without its driver it is about to
// end by itself.
bool StartedHere(pid_t warden) {
  return VariableIn(ReadProcFile(ProcName(warden, "environ")), kLocalAgentName).has_value();
}

// The machine sees processes of its containers, which are hosts of their own.
bool IsInOurPidNamespace(pid_t pid) {
  struct stat theirs {};
  struct stat ours {};
  return ::stat(("/proc/" + ProcName(pid, "ns/pid")).c_str(), &theirs) == 0 &&
         ::stat("/proc/self/ns/pid", &ours) == 0 && theirs.st_ino == ours.st_ino;
}

JobHere PartOf(const std::vector<ProcessInfo>& all, const ProcessInfo& warden,
               const std::string& id) {
  JobHere part;
  part.id = id;
  part.driver = warden;
  part.part = true;
  part.age_seconds = AgeSeconds(warden);
  const std::string environment = ReadProcFile(ProcName(warden.pid, "environ"));
  const std::string connection = VariableIn(environment, "SSH_CONNECTION").value_or("");
  part.from = Printable(connection.substr(0, connection.find(' ')));
  CountRanks(all, warden.pid, part);
  return part;
}

// The ids of one job's agents are consecutive.
bool IsOfJob(const JobHere& part, const JobHere& job) {
  constexpr uint64_t kMostHosts = 1 << 16;
  return part.id == job.id ||
         ParseJobId(part.id).value_or(0) - ParseJobId(job.id).value_or(0) < kMostHosts;
}

void AddAnswers(const std::vector<ProcessInfo>& all, std::map<pid_t, JobHere>& by_driver) {
  for (const DriverReply& seen : AskDrivers(kAnswerLimit)) {
    const ProcessInfo* driver = Find(all, seen.pid);
    if (driver == nullptr) continue;
    JobHere& job = by_driver[seen.pid];
    job.id = seen.job;
    job.driver = *driver;
    if (!seen.counts) continue;
    job.size = seen.counts->size;
    job.ranks_alive = seen.counts->alive;
  }
}

}  // namespace

std::optional<std::string> AgentJobIn(std::string_view command_line) {
  std::vector<std::string> words = Words(command_line);
  if (words.size() != 4 || words[1] != "agent" || words[2] != "--job") return std::nullopt;
  if (!ParseJobId(words[3])) return std::nullopt;
  return words[3];
}

std::vector<JobHere> ListJobs() {
  std::vector<ProcessInfo> all = ListProcesses();
  std::map<pid_t, std::string> agents;  // and wardens
  for (const ProcessInfo& process : all) {
    if (process.state == 'Z' || !IsOwnProcess(process.pid)) continue;
    std::optional<std::string> id = AgentJobIn(ReadProcFile(ProcName(process.pid, "cmdline")));
    if (id) agents[process.pid] = *id;
  }
  std::map<pid_t, JobHere> by_driver;
  std::vector<JobHere> parts;
  for (const ProcessInfo& warden : all) {
    auto known = agents.find(warden.pid);
    if (known == agents.end() || agents.contains(warden.parent)) continue;
    if (!StartedHere(warden.pid)) {
      if (IsInOurPidNamespace(warden.pid)) parts.push_back(PartOf(all, warden, known->second));
      continue;
    }
    const ProcessInfo* driver = Find(all, warden.parent);
    if (driver == nullptr || Program(driver->pid) != Program(warden.pid)) continue;
    JobHere& job = by_driver[driver->pid];
    if (job.id.empty() || known->second < job.id) job.id = known->second;
    job.driver = *driver;
    CountRanks(all, warden.pid, job);
  }
  AddAnswers(all, by_driver);
  std::vector<JobHere> jobs;
  for (auto& [pid, job] : by_driver) {
    job.age_seconds = AgeSeconds(job.driver);
    job.command = CommandOf(pid);
    jobs.push_back(std::move(job));
  }
  for (JobHere& part : PartsBeside(jobs, parts)) jobs.push_back(std::move(part));
  std::sort(jobs.begin(), jobs.end(), [](const JobHere& a, const JobHere& b) {
    return a.driver.start_ticks < b.driver.start_ticks;
  });
  return jobs;
}

std::vector<JobHere> PartsBeside(const std::vector<JobHere>& jobs,
                                 const std::vector<JobHere>& parts) {
  std::vector<JobHere> beside;
  for (const JobHere& part : parts) {
    if (std::any_of(jobs.begin(), jobs.end(),
                    [&](const JobHere& job) { return IsOfJob(part, job); }))
      continue;
    auto same = std::find_if(beside.begin(), beside.end(),
                             [&](const JobHere& other) { return other.id == part.id; });
    if (same == beside.end()) {
      beside.push_back(part);
    } else {
      same->ranks_alive += part.ranks_alive;
    }
  }
  return beside;
}

Result<const JobHere*> JobNamed(const std::vector<JobHere>& jobs, std::string_view id_or_prefix) {
  const JobHere* named = nullptr;
  for (const JobHere& job : jobs) {
    if (job.id == id_or_prefix) return &job;
    if (id_or_prefix.empty() || !job.id.starts_with(id_or_prefix)) continue;
    if (named != nullptr)
      return InvalidArgument("jobs " + named->id + " and " + job.id + " both begin with " +
                             Quoted(id_or_prefix) + "; type more of the id");
    named = &job;
  }
  if (named != nullptr) return named;
  return InvalidArgument("no job " + Quoted(id_or_prefix) +
                         " of yours runs on this machine; hvdrun ps lists them");
}

Result<const JobHere*> JobToLookAt(const std::vector<JobHere>& jobs,
                                   std::string_view id_or_prefix) {
  if (!id_or_prefix.empty()) {
    Result<const JobHere*> named = JobNamed(jobs, id_or_prefix);
    if (!named.ok() || !(*named)->part) return named;
    return InvalidArgument("only a part of job " + (*named)->id +
                           " runs on this machine; ask where its hvdrun runs, on " +
                           Origin(**named));
  }
  const JobHere* only = nullptr;
  std::string ids;
  for (const JobHere& job : jobs) {
    if (job.part) continue;
    only = &job;
    ids += (ids.empty() ? "" : ", ") + job.id;
  }
  if (only == nullptr) return InvalidArgument("no job of yours was started on this machine");
  if (ids != only->id) return InvalidArgument("name one of your jobs: " + ids);
  return only;
}

std::string Origin(const JobHere& part) {
  return part.from.empty() ? "another machine" : part.from;
}

std::string JobsTable(const std::vector<JobHere>& jobs) {
  std::string text = "JOB                    AGE     NP  ALIVE  COMMAND\n";
  for (const JobHere& job : jobs) {
    std::string size = job.size == 0 ? "-" : std::to_string(job.size);
    text += Format("{:<16}  {:>8}  {:>5}  {:5}  ", job.id, AgeText(job.age_seconds), size,
                   job.ranks_alive);
    text += (job.part ? "part of a job of " + Origin(job) : "");
    text += (job.part && !job.command.empty() ? ": " : "") + job.command + "\n";
  }
  return text;
}

}  // namespace hvd
