#include "launcher/detached/detached_job.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "launcher/output/text/json_field.h"
#include "launcher/process/jobs/job_place.h"
#include "launcher/process/proc_file.h"
#include "runtime/base/clock.h"
#include "runtime/base/output_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"
#include "runtime/base/text/printable_text.h"

namespace hvd {
namespace {

using DetachedJson = nlohmann::ordered_json;

constexpr size_t kMostName = 24;
constexpr int kMostJobsOfOneName = 10'000;

std::string Dumped(const DetachedJson& json) {
  return json.dump(-1, ' ', false, DetachedJson::error_handler_t::replace);
}

DetachedJson JsonOf(const DetachedJob& job) {
  return {{"version", 1},
          {"name", job.name},
          {"job", job.id},
          {"command", job.command},
          {"directory", job.directory},
          {"host", job.host},
          {"place", job.place},
          {"pid", job.driver},
          {"start_ticks", job.driver_start_ticks},
          {"pipe", job.pipe},
          {"mark", job.mark},
          {"started_at", job.started_at},
          {"elastic", job.elastic},
          {"output_limit_bytes", job.output_limit_bytes},
          {"ranks_folder", job.ranks_folder},
          {"error_file", job.error_file}};
}

DetachedJson JsonOf(const DetachedEnd& end) {
  return {{"exit_code", end.exit_code}, {"at", end.at}, {"reason", end.reason}};
}

// For people and scripts.
DetachedJson ListedJson(const DetachedJob& job) {
  DetachedJson json = JsonOf(job);
  json.erase("mark");
  json["state"] = DetachedState(job);
  if (job.end) json["end"] = JsonOf(*job.end);
  return json;
}

template <typename Value, typename Parse>
Result<Value> Parsed(std::string_view text, const Parse& parse) {
  try {
    return parse(DetachedJson::parse(text));
  } catch (const nlohmann::json::exception& error) {
    return InvalidArgument(std::string("is damaged: ") + error.what());
  }
}

// Checks that the folder belongs to this user and is closed to all others.
Status CheckPrivate(const std::string& folder) {
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0) return SystemError("cannot use " + folder, errno);
  if (S_ISLNK(facts.st_mode))
    return InvalidArgument(folder +
                           " is a symbolic link, which is not followed; set XDG_STATE_HOME to the "
                           "folder that it leads to, or to another one of your own");
  if (!S_ISDIR(facts.st_mode)) return InvalidArgument(folder + " is no folder");
  if (facts.st_uid != ::geteuid())
    return InvalidArgument(folder +
                           " belongs to another user; set XDG_STATE_HOME to a folder "
                           "of your own");
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0 && ::chmod(folder.c_str(), S_IRWXU) != 0)
    return SystemError("cannot close " + folder + " to other users", errno);
  return Status::Ok();
}

bool IsForeign(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && facts.st_uid != ::geteuid();
}

// Why there is no valid job at this path; nothing: it is being created.
std::optional<DamagedJob> DamageOf(const std::string& path, const std::string& unreadable) {
  constexpr int64_t kSecondsOfStart = 10;
  DamagedJob damaged{std::filesystem::path(path).filename(), path, "", true};
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return std::nullopt;  // removed meanwhile
  if (facts.st_uid != ::geteuid()) {
    damaged.reason = Format("belongs to another user (uid {})", facts.st_uid);
    damaged.removable = false;
  } else if (!S_ISDIR(facts.st_mode)) {
    damaged.reason = "is no folder";
  } else if (::access((path + "/job").c_str(), F_OK) == 0) {
    damaged.reason = unreadable;
  } else if (std::abs(WallSeconds() - facts.st_mtime) < kSecondsOfStart || IsKept(path)) {
    return std::nullopt;
  } else {
    damaged.reason = "has no file that says what job it is of";
  }
  return damaged;
}

// Anyone who can write to hvdrun's own folder above it could replace it.
Status CheckBothPrivate(const std::string& jobs) {
  HVD_RETURN_IF_ERROR(CheckPrivate(std::filesystem::path(jobs).parent_path()));
  return CheckPrivate(jobs);
}

}  // namespace

std::string DetachedJobsFolder(
    const std::function<std::optional<std::string>(const char* name)>& variable) {
  const std::string state = variable("XDG_STATE_HOME").value_or("");
  if (state.starts_with('/')) return state + "/hvdrun/jobs";
  const std::string home = variable("HOME").value_or("");
  return home.starts_with('/') ? home + "/.local/state/hvdrun/jobs" : "";
}

std::string NameFor(const std::vector<std::string>& command) {
  std::string chosen = command.empty() ? "" : command.front();
  for (const std::string& word : command) {
    if (!word.ends_with(".py")) continue;
    chosen = word.substr(0, word.size() - 3);
    break;
  }
  std::string name;
  for (char c : chosen.substr(chosen.rfind('/') + 1)) {
    if (name.size() >= kMostName) break;
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 && byte < 0x80) {
      name += static_cast<char>(std::tolower(byte));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-')) name.pop_back();
  return name.empty() ? "job" : name;
}

Status MakePrivateFolder(const std::string& path, const std::string& cannot) {
  for (size_t end = path.find('/', 1); end != std::string::npos;
       end = end == path.size() ? std::string::npos
                                : std::min(path.find('/', end + 1), path.size())) {
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
      return SystemError(cannot + " " + folder, errno);
  }
  return CheckBothPrivate(path);
}

Result<std::string> MakeJobFolder(const std::string& jobs, const std::string& first) {
  if (jobs.empty())
    return InvalidArgument(
        "--detach keeps output below XDG_STATE_HOME or HOME, and neither is set");
  const std::string cannot = "--detach cannot keep output in";
  HVD_RETURN_IF_ERROR(MakePrivateFolder(jobs, cannot));
  for (int number = 1; number <= kMostJobsOfOneName; ++number) {
    const std::string folder = Format("{}/{}-{}", jobs, first, number);
    if (::mkdir(folder.c_str(), S_IRWXU) == 0) return folder;
    if (errno != EEXIST) return SystemError(cannot + " " + folder, errno);
  }
  return InvalidArgument(
      Format("there are {} jobs named {} already; remove some with hvdrun forget",
             kMostJobsOfOneName, first));
}

std::string DetachedJobJson(const DetachedJob& job) { return Dumped(JsonOf(job)) + "\n"; }

Result<DetachedJob> ParseDetachedJob(std::string_view text) {
  return Parsed<DetachedJob>(text, [](const DetachedJson& json) {
    DetachedJob job;
    ReadField(json, "name", job.name);
    ReadField(json, "job", job.id);
    ReadField(json, "command", job.command);
    ReadField(json, "directory", job.directory);
    ReadField(json, "host", job.host);
    ReadField(json, "place", job.place);
    ReadField(json, "pid", job.driver);
    ReadField(json, "start_ticks", job.driver_start_ticks);
    ReadField(json, "pipe", job.pipe);
    if (json.contains("mark")) ReadField(json, "mark", job.mark);
    ReadField(json, "started_at", job.started_at);
    ReadField(json, "elastic", job.elastic);
    ReadField(json, "output_limit_bytes", job.output_limit_bytes);
    ReadField(json, "ranks_folder", job.ranks_folder);
    ReadField(json, "error_file", job.error_file);
    return job;
  });
}

std::string DetachedEndJson(const DetachedEnd& end) { return Dumped(JsonOf(end)) + "\n"; }

Result<DetachedEnd> ParseDetachedEnd(std::string_view text) {
  return Parsed<DetachedEnd>(text, [](const DetachedJson& json) {
    DetachedEnd end;
    ReadField(json, "exit_code", end.exit_code);
    ReadField(json, "at", end.at);
    ReadField(json, "reason", end.reason);
    return end;
  });
}

Result<DetachedJob> ReadDetachedJob(const std::string& folder) {
  Result<DetachedJob> job = ParseDetachedJob(ReadSmallFile(folder + "/job"));
  if (!job.ok()) return InvalidArgument("has a file job that " + job.status().message());
  job->folder = folder;
  job->name = std::filesystem::path(folder).filename();
  const Result<DetachedEnd> end = ParseDetachedEnd(ReadSmallFile(job->PathOf("end")));
  if (end.ok()) job->end = *end;
  return job;
}

Result<std::vector<DetachedJob>> ReadDetachedJobs(const std::string& jobs,
                                                  std::vector<DamagedJob>* damaged) {
  std::vector<DetachedJob> found;
  struct stat facts {};
  if (jobs.empty() || (::lstat(jobs.c_str(), &facts) != 0 && errno == ENOENT)) return found;
  HVD_RETURN_IF_ERROR(CheckBothPrivate(jobs));
  std::error_code error;
  for (std::filesystem::directory_iterator at(jobs, error), end; !error && at != end;
       at.increment(error)) {
    Result<DetachedJob> job = ReadDetachedJob(at->path());
    if (job.ok() && !IsForeign(at->path())) {
      found.push_back(std::move(*job));
    } else if (damaged != nullptr) {
      auto damage = DamageOf(at->path(), job.status().message());
      if (damage) damaged->push_back(std::move(*damage));
    }
  }
  std::ranges::sort(found, {},
                    [](const DetachedJob& job) { return std::pair(job.started_at, job.name); });
  return found;
}

Result<DetachedJob> DetachedJobNamed(const std::vector<DetachedJob>& jobs, std::string_view name) {
  const DetachedJob* only = nullptr;
  std::string running;
  for (const DetachedJob& job : jobs) {
    if (name == job.name || (!name.empty() && name == job.id)) return job;
    if (job.end) continue;
    running += (running.empty() ? "" : ", ") + job.name;
    only = &job;
  }
  if (!name.empty())
    return InvalidArgument("you have no detached job " + Quoted(name) +
                           " on this machine; hvdrun ps lists them");
  if (only == nullptr)
    return InvalidArgument("no detached job of yours runs; name one that has ended");
  if (running != only->name) return InvalidArgument("name one of your jobs: " + running);
  return *only;
}

bool IsOfThisMachine(const DetachedJob& job) {
  const std::optional<JobPlace> here = PlaceHere(), there = ParseJobPlace(job.place);
  return here && there && here->SameAs(*there);
}

namespace {

std::optional<ProcessInfo> ProcessOf(const DetachedJob& job) {
  if (job.driver <= 0 || !IsOfThisMachine(job)) return std::nullopt;
  std::optional<ProcessInfo> process = LookAtProcess(job.driver);
  if (!process || process->start_ticks != job.driver_start_ticks || process->state == 'Z')
    return std::nullopt;
  return process;
}

}  // namespace

std::optional<ProcessInfo> DriverOf(const DetachedJob& job) {
  if (auto process = ProcessOf(job)) return process;
  for (pid_t looked = 0;;) {
    const Result<DetachedJob> standby = ParseDetachedJob(ReadSmallFile(job.PathOf("standby")));
    if (!standby.ok()) return std::nullopt;
    if (auto process = ProcessOf(*standby)) return process;
    // The standby has taken over since, and has a standby of its own.
    const Result<DetachedJob> again = ParseDetachedJob(ReadSmallFile(job.PathOf("job")));
    if (!again.ok()) return std::nullopt;
    if (auto process = ProcessOf(*again)) return process;
    if (std::exchange(looked, standby->driver) == standby->driver) return std::nullopt;
  }
}

std::optional<int> ReadExitCode(const DetachedJob& job) {
  const std::string text = ReadSmallFile(job.PathOf("exit"));
  return ParseWhole<int>(std::string_view(text).substr(0, text.find('\n')));
}

Status PrepareExitCode(const DetachedJob& job) {
  return WriteWholeFile(job.PathOf("exit"), "---\n");
}

void WriteExitCode(const DetachedJob& job, int code) {
  const UniqueFd file(::open(job.PathOf("exit").c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return;  // its folder was removed
  const std::string text = Format("{:03}\n", code & 0xff);
  (void)!::pwrite(file.get(), text.data(), text.size(), 0);
}

bool IsKept(const std::string& folder) {
  const UniqueFd lock(::open((folder + "/lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
}

Status RemoveDetachedJob(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (error) return InvalidArgument("cannot remove " + folder + ": " + error.message());
  return Status::Ok();
}

std::string DetachedState(const DetachedJob& job) {
  if (job.end) return job.end->exit_code == 0 ? "ended" : "failed";
  return IsOfThisMachine(job) ? "running" : "elsewhere";
}

std::string DetachedTable(const std::vector<DetachedJob>& jobs, int64_t now) {
  if (jobs.empty()) return "";
  std::string text = "NAME                  STATE      EXIT       AGE  COMMAND\n";
  for (const DetachedJob& job : jobs) {
    const int64_t age = std::max<int64_t>(now - job.started_at, 0);
    text += Format("{:<20}  {:<9}  {:>4}  {:>8}  {}{}\n", job.name, DetachedState(job),
                   job.end ? std::to_string(job.end->exit_code) : "-",
                   Format("{}:{:02}:{:02}", age / 3600, age / 60 % 60, age % 60),
                   IsOfThisMachine(job) ? "" : "on " + Printable(job.host) + ": ",
                   Printable(job.command, 120));
  }
  return text;
}

std::string DetachedListJson(const std::vector<DetachedJob>& jobs) {
  DetachedJson list = DetachedJson::array();
  for (const DetachedJob& job : jobs) list.push_back(ListedJson(job));
  return Dumped(list) + "\n";
}

std::string ListsOfHostsJson(const std::vector<std::pair<std::string, std::string>>& lists) {
  DetachedJson json = DetachedJson::object();
  for (const auto& [host, list] : lists) {
    const DetachedJson parsed = DetachedJson::parse(list, nullptr, /*allow_exceptions=*/false);
    json[host] = parsed.is_discarded() ? DetachedJson() : parsed;
  }
  return Dumped(json) + "\n";
}

std::string DetachedStatusJson(const DetachedJob& job, const std::string& view) {
  DetachedJson json = ListedJson(job);
  if (!view.empty()) {
    try {
      json["view"] = DetachedJson::parse(view);
    } catch (const nlohmann::json::exception&) {
      json["view"] = nullptr;
    }
  }
  if (const std::string report = ReportOf(job); !report.empty()) json["report"] = report;
  return Dumped(json) + "\n";
}

std::string ReportOf(const DetachedJob& job) {
  if (!job.end || job.error_file.empty()) return "";
  try {
    const DetachedJson json = DetachedJson::parse(ReadSmallFile(job.error_file));
    if (json.value("job", "") != job.id) return "";  // of another job
    return json.value("report", "");
  } catch (const nlohmann::json::exception&) {
    return "";
  }
}

}  // namespace hvd
