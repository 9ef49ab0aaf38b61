#include "launcher/jobs/local_jobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "configs/message_text.h"
#include "launcher/jobs/job_id.h"
#include "launcher/process/proc_file.h"

namespace hvd {
namespace {

constexpr size_t kMaxCommandShown = 120;

std::string ProcName(pid_t pid, const char* name) { return std::to_string(pid) + "/" + name; }

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
  char text[32];
  std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", static_cast<long long>(seconds / 3600),
                static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  return text;
}

// Workers are the children of the agent, which is the child of the warden, which is the driver's.
void CountRanks(const std::vector<ProcessInfo>& all, pid_t warden, JobHere& job) {
  for (const ProcessInfo& agent : all) {
    if (agent.parent != warden) continue;
    for (const ProcessInfo& worker : all) {
      if (worker.parent != agent.pid || worker.state == 'Z') continue;
      std::optional<std::string> size =
          VariableIn(ReadProcFile(ProcName(worker.pid, "environ")), "HOROVOD_SIZE");
      if (!size) continue;
      ++job.ranks_alive;
      std::from_chars(size->data(), size->data() + size->size(), job.size);
    }
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
  for (const ProcessInfo& warden : all) {
    auto known = agents.find(warden.pid);
    if (known == agents.end() || agents.contains(warden.parent)) continue;
    auto driver = std::find_if(all.begin(), all.end(),
                               [&](const ProcessInfo& p) { return p.pid == warden.parent; });
    // An agent whose hvdrun is gone is about to end by itself.
    if (driver == all.end() || Program(driver->pid) != Program(warden.pid)) continue;
    JobHere& job = by_driver[driver->pid];
    if (job.id.empty() || known->second < job.id) job.id = known->second;
    job.driver = *driver;
    CountRanks(all, warden.pid, job);
  }
  std::vector<JobHere> jobs;
  for (auto& [pid, job] : by_driver) {
    job.age_seconds = AgeSeconds(job.driver);
    job.command = CommandOf(pid);
    jobs.push_back(std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(), [](const JobHere& a, const JobHere& b) {
    return a.driver.start_ticks < b.driver.start_ticks;
  });
  return jobs;
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

std::string JobsTable(const std::vector<JobHere>& jobs) {
  std::string text = "JOB                    AGE     NP  ALIVE  COMMAND\n";
  for (const JobHere& job : jobs) {
    std::string size = job.size == 0 ? "-" : std::to_string(job.size);
    char line[128];
    std::snprintf(line, sizeof line, "%-16s  %8s  %5s  %5u  ", job.id.c_str(),
                  AgeText(job.age_seconds).c_str(), size.c_str(), job.ranks_alive);
    text += line + job.command + "\n";
  }
  return text;
}

}  // namespace hvd
