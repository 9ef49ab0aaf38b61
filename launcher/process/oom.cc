#include "launcher/process/oom.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "launcher/process/cgroup.h"
#include "launcher/process/proc_file.h"

namespace hvd {
namespace {

constexpr std::string_view kField = "oom_kill ";

bool Readable(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

// Version 1: the controller's own hierarchy, at its usual place.
std::string Version1File(const std::string& proc_cgroup) {
  constexpr std::string_view kController = ":memory:";
  size_t at = proc_cgroup.find(kController);
  if (at == std::string::npos) return "";
  size_t begin = at + kController.size();
  std::string path = proc_cgroup.substr(begin, proc_cgroup.find('\n', begin) - begin);
  for (const std::string& folder :
       {"/sys/fs/cgroup/memory" + path, std::string("/sys/fs/cgroup/memory")}) {
    if (Readable(folder + "/memory.oom_control")) return folder + "/memory.oom_control";
  }
  return "";
}

std::string FindCgroupFile() {
  std::string proc_cgroup = ReadProcFile("self/cgroup");
  std::string folder = CgroupFolder(ReadProcFile("self/mountinfo"), proc_cgroup);
  if (!folder.empty() && Readable(folder + "/memory.events")) return folder + "/memory.events";
  return Version1File(proc_cgroup);
}

}  // namespace

OomCounters::OomCounters() : cgroup_file_(FindCgroupFile()) {}

// The machine's counter includes other processes: used only if there is no counter of our own.
uint64_t OomCounters::Kills() const {
  std::string text = cgroup_file_.empty() ? ReadProcFile("vmstat") : ReadSmallFile(cgroup_file_);
  return OomKillsIn(text).value_or(0);
}

void OomBaseline::Look(uint64_t kills, const std::function<bool()>& any_dying) {
  if (kills > seen_) {
    seen_ = kills;
  } else if (seen_ > settled_ && !any_dying()) {
    settled_ = seen_;
  }
}

bool OomBaseline::CountKill(uint64_t kills) {
  seen_ = std::max(seen_, kills);
  if (seen_ <= settled_) return false;
  ++settled_;
  return true;
}

std::optional<uint64_t> OomKillsIn(std::string_view text) {
  for (size_t at = text.find(kField); at != std::string_view::npos;
       at = text.find(kField, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    uint64_t value = 0;
    std::string_view rest = text.substr(at + kField.size());
    if (std::from_chars(rest.data(), rest.data() + rest.size(), value).ec == std::errc())
      return value;
  }
  return std::nullopt;
}

}  // namespace hvd
