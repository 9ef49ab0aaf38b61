#include "launcher/process/jobs/dead_jobs.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "launcher/process/cgroup.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/one_process.h"
#include "launcher/process/proc_file.h"
#include "launcher/process/recorder_folder.h"
#include "runtime/base/env.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr Duration kLimit = std::chrono::seconds(3);
constexpr int kJobLookAgainMs = 5;

// The job of an agent or a warden from its command line, whatever runs it (valgrind, a wrapper).
std::optional<std::string> KeptJob(std::string_view command) {
  using std::string_view_literals::operator""sv;
  constexpr std::string_view kArguments = "\0agent\0--job\0"sv;
  size_t at = command.find(kArguments);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = command.substr(at + kArguments.size());
  return std::string(rest.substr(0, rest.find('\0')));
}

// Agents and wardens also have their job's id, so for a process that is not part of a job one file
// suffices.
std::optional<JobProcess> Examine(pid_t pid) {
  const std::string folder = Format("{}/", pid);
  if (!IsOwnProcess(pid)) return std::nullopt;
  const std::string environment = ReadProcFile(folder + "environ");
  std::optional<std::string> job = VariableIn(environment, "HVD_JOB_ID");
  if (!job || !ParseJobId(*job)) return std::nullopt;
  const std::string command = ReadProcFile(folder + "cmdline");
  const std::optional<ProcessInfo> process = LookAtProcess(pid);
  if (!process || process->state == 'Z' || process->state == 'X') return std::nullopt;
  if (std::optional<std::string> kept = KeptJob(command))
    return JobProcess{*process, *kept, std::nullopt, true};
  JobProcess found{*process, *job, std::nullopt, command.empty()};
  if (std::optional<std::string> text = VariableIn(environment, "HVD_JOB_PLACE"))
    found.place = ParseJobPlace(*text);
  return found;
}

std::vector<JobProcess> Look() {
  std::vector<JobProcess> seen;
  for (pid_t pid : ListPids()) {
    if (std::optional<JobProcess> found = Examine(pid)) seen.push_back(std::move(*found));
  }
  return seen;
}

// The ids of jobs that have an agent or a warden.
std::set<std::string> Kept(const std::vector<JobProcess>& seen) {
  std::set<std::string> kept;
  for (const JobProcess& process : seen) {
    if (process.keeps_job) kept.insert(process.job);
  }
  return kept;
}

// Sends SIGKILL until nothing of dead jobs is left, starting with `seen`; returns all processes
// seen, by job.
std::map<std::string, std::set<pid_t>> KillLeftOver(std::vector<JobProcess> seen,
                                                    const JobPlace& here, const std::string& own) {
  std::map<std::string, std::set<pid_t>> ended;
  for (TimePoint deadline = SteadyNow() + kLimit; SteadyNow() < deadline; seen = Look()) {
    std::map<std::string, std::vector<ProcessInfo>> left = LeftOver(seen, here);
    left.erase(own);
    if (left.empty()) break;
    for (const auto& [job, processes] : left) {
      for (const ProcessInfo& process : processes) {
        SignalProcess(process, SIGKILL);
        ended[job].insert(process.pid);
      }
    }
    ::poll(nullptr, 0, kJobLookAgainMs);
  }
  return ended;
}

void EndGroups(const std::vector<std::string>& groups, const std::set<std::string>& kept,
               std::map<std::string, std::set<pid_t>>& ended) {
  for (const std::string& job : groups) {
    if (!ParseJobId(job) || kept.contains(job)) continue;
    for (pid_t pid : ProcessesInCgroup(job)) ended[job].insert(pid);
    KillCgroup(job);
    RemoveCgroup(job);
    RemoveRecorderFolders(job);
  }
}

std::string Sentence(const std::string& job, size_t count) {
  return Format(
      "job {} was killed as a whole, with its agent and its warden; {}{} had left behind {} ended",
      job, count, count == 1 ? " process that it" : " processes that it",
      count == 1 ? "was" : "were");
}

}  // namespace

std::map<std::string, std::vector<ProcessInfo>> LeftOver(const std::vector<JobProcess>& seen,
                                                         const JobPlace& here) {
  std::set<std::string> kept = Kept(seen);
  std::map<pid_t, const JobProcess*> dead;
  for (const JobProcess& process : seen) {
    if (!kept.contains(process.job) && process.place && process.place->SameAs(here))
      dead[process.process.pid] = &process;
  }
  auto lost_its_parents = [&](const JobProcess& process) {
    const JobProcess* top = &process;
    for (size_t steps = 0; steps < dead.size(); ++steps) {
      auto above = dead.find(top->process.parent);
      if (above == dead.end() || above->second->job != process.job) break;
      top = above->second;
    }
    const std::vector<pid_t>& parents = top->place->parents;
    return std::find(parents.begin(), parents.end(), top->process.parent) != parents.end();
  };
  std::map<std::string, std::vector<ProcessInfo>> left;
  for (const auto& [pid, process] : dead) {
    if (lost_its_parents(*process)) left[process->job].push_back(process->process);
  }
  return left;
}

std::vector<std::string> EndDeadJobs() {
  std::vector<std::string> sentences;
  std::optional<JobPlace> here = PlaceHere();
  if (!here) return sentences;
  std::map<std::string, std::set<pid_t>> ended;
  const std::vector<std::string> groups =
      CgroupsHere();  // first: a warden is there before its group
  std::vector<JobProcess> seen = Look();
  EndGroups(groups, Kept(seen), ended);
  RemoveAbandonedCgroups();
  const std::string own = GetEnv("HVD_JOB_ID").value_or("");
  for (const auto& [job, pids] : KillLeftOver(std::move(seen), *here, own)) {
    ended[job].insert(pids.begin(), pids.end());
    RemoveRecorderFolders(job);
    RemoveCgroup(job);  // a warden that was about to end may have prevented it the first time
  }
  for (const auto& [job, pids] : ended) {
    if (!pids.empty()) sentences.push_back(Sentence(job, pids.size()));
  }
  return sentences;
}

}  // namespace hvd
