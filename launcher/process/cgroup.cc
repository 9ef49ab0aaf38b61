#include "launcher/process/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "launcher/process/proc_file.h"
#include "runtime/base/kernel_features.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr std::string_view kName = "hvd-";
constexpr int kTryAgainMs = 2;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The folder of the calling process; empty without cgroup2.
const std::string& LibraryDir() {
  static const std::string own =
      CgroupFolder(ReadProcFile("self/mountinfo"), ReadProcFile("self/cgroup"));
  return own;
}

// The suffix in the name of the job's folder: the pid namespace of its agent. A container may share
// our cgroups but hide its processes.
std::string Suffix() {
  struct stat space {};
  return ::stat("/proc/self/ns/pid", &space) == 0 ? Format(".{}", space.st_ino) : ".";
}

// The job's folder, whether it exists or not; empty without cgroup2.
std::string FolderOf(const std::string& job_id) {
  if (Without("cgroup")) return "";
  return LibraryDir().empty() ? "" : Format("{}/{}{}{}", LibraryDir(), kName, job_id, Suffix());
}

// The names of the folders of this user's jobs, in all pid namespaces.
std::vector<std::string> OwnGroups() {
  std::vector<std::string> names;
  if (Without("cgroup") || LibraryDir().empty()) return names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(LibraryDir(), error)) {
    std::string name = entry.path().filename().string();
    struct stat info {};
    if (name.starts_with(kName) && ::stat(entry.path().c_str(), &info) == 0 &&
        info.st_uid == ::geteuid()) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace

std::string CgroupFolder(std::string_view mountinfo, std::string_view proc_cgroup) {
  std::string_view path;
  for (std::string_view line : Split(proc_cgroup, '\n')) {
    if (line.starts_with("0::")) path = line.substr(3);
  }
  if (path.empty()) return "";
  for (std::string_view line : Split(mountinfo, '\n')) {
    size_t type = line.find(" - cgroup2 ");
    if (type == std::string_view::npos) continue;
    std::vector<std::string_view> fields = Split(line.substr(0, type), ' ');
    if (fields.size() < 5) continue;
    std::string_view root = fields[3], mounted_at = fields[4];
    std::string_view below = path;
    if (root != "/") {
      if (!below.starts_with(root)) continue;
      below.remove_prefix(root.size());
    }
    return std::string(mounted_at) + std::string(below == "/" ? "" : below);
  }
  return "";
}

UniqueFd MakeCgroup(const std::string& job_id) {
  std::string folder = FolderOf(job_id);
  if (folder.empty() || ::mkdir(folder.c_str(), 0755) != 0) return UniqueFd();
  UniqueFd group = OpenCgroup(job_id);
  if (group.valid() && ::access((folder + "/cgroup.kill").c_str(), W_OK) == 0 &&
      ::flock(group.get(), LOCK_SH | LOCK_NB) == 0) {
    return group;  // if it is abandoned by now, the job has none
  }
  ::rmdir(folder.c_str());
  return UniqueFd();
}

UniqueFd OpenCgroup(const std::string& job_id) {
  std::string folder = FolderOf(job_id);
  if (folder.empty()) return UniqueFd();
  return UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

void KillCgroup(const std::string& job_id) {
  std::string folder = FolderOf(job_id);
  if (folder.empty()) return;
  UniqueFd kill(::open((folder + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (kill.valid() && ::write(kill.get(), "1", 1) != 1) return;  // other means follow in any case
}

std::vector<std::string> CgroupsHere() {
  std::vector<std::string> ids;
  const std::string suffix = Suffix();
  for (std::string name : OwnGroups()) {
    if (!name.ends_with(suffix)) continue;
    name.resize(name.size() - suffix.size());
    ids.push_back(name.substr(kName.size()));
  }
  return ids;
}

void RemoveAbandonedCgroups() {
  for (const std::string& name : OwnGroups()) {
    const std::string folder = LibraryDir() + "/" + name;
    const UniqueFd group(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (group.valid() && ::flock(group.get(), LOCK_EX | LOCK_NB) == 0) ::rmdir(folder.c_str());
  }
}

std::vector<pid_t> ProcessesInCgroup(const std::string& job_id) {
  std::vector<pid_t> pids;
  const std::string text = ReadSmallFile(FolderOf(job_id) + "/cgroup.procs");
  for (std::string_view line : Split(text, '\n')) {
    if (const auto pid = ParseWhole<pid_t>(line); pid && *pid > 0) pids.push_back(*pid);
  }
  return pids;
}

void RemoveCgroup(const std::string& job_id, Duration patience) {
  std::string folder = FolderOf(job_id);
  if (folder.empty()) return;
  // A killed process stays in the group for a moment, longer on a busy machine or while it writes a
  // core file.
  const TimePoint deadline = SteadyNow() + patience;
  while (::rmdir(folder.c_str()) != 0 && errno == EBUSY && SteadyNow() < deadline)
    ::poll(nullptr, 0, kTryAgainMs);
}

}  // namespace hvd
