#include "runtime/base/cpu_quota.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

std::vector<std::string_view> Parts(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool Holds(std::string_view list, std::string_view word) {
  const std::vector<std::string_view> words = Parts(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A mounted cgroup hierarchy.
struct Mount {
  std::string_view root, folder;  // the group that is mounted at that folder
  bool version2 = false;
};

std::vector<Mount> CpuMounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  for (std::string_view line : Parts(mountinfo, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const std::vector<std::string_view> before = Parts(line.substr(0, dash), ' ');
    const std::vector<std::string_view> after = Parts(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    const bool version2 = after[0] == "cgroup2";
    if (version2 || (after[0] == "cgroup" && Holds(after[2], "cpu")))
      mounts.push_back({before[3], before[4], version2});
  }
  return mounts;
}

// The process's group in that hierarchy: "/user.slice/me".
std::string_view GroupIn(const Mount& mount, std::string_view proc_cgroup) {
  for (std::string_view line : Parts(proc_cgroup, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (mount.version2 ? controllers.empty() : Holds(controllers, "cpu"))
      return line.substr(second + 1);
  }
  return "";
}

// Below the mount's folder. In a container the group may have the host's name for it, though only
// the container's own part is mounted: then the mount is the group.
std::string_view Below(const Mount& mount, std::string_view group) {
  if (mount.root != "/") {
    const bool inside = group.starts_with(mount.root) &&
                        (group.size() == mount.root.size() || group[mount.root.size()] == '/');
    return inside ? group.substr(mount.root.size()) : "";
  }
  return group == "/" || group.starts_with("/..") ? "" : group;
}

std::string Trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

std::optional<double> Quotient(std::string_view quota, std::string_view period) {
  const auto microseconds = ParseWhole<int64_t>(quota);
  const auto of = ParseWhole<int64_t>(period);
  if (!microseconds || !of || *microseconds <= 0 || *of <= 0) return std::nullopt;  // -1: no limit
  return static_cast<double>(*microseconds) / static_cast<double>(*of);
}

std::optional<double> QuotaAt(const std::string& folder, bool version2,
                              const SmallFileReader& read) {
  if (!version2)
    return Quotient(Trimmed(read(folder + "/cpu.cfs_quota_us")),
                    Trimmed(read(folder + "/cpu.cfs_period_us")));
  const std::string text = Trimmed(read(folder + "/cpu.max"));  // "200000 100000", "max 100000"
  const std::vector<std::string_view> words = Parts(text, ' ');
  return words.size() == 2 ? Quotient(words[0], words[1]) : std::nullopt;
}

std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::optional<double> CpuQuotaOf(std::string_view mountinfo, std::string_view proc_cgroup,
                                 const SmallFileReader& read) {
  std::optional<double> least;
  for (const Mount& mount : CpuMounts(mountinfo)) {
    std::string_view below = Below(mount, GroupIn(mount, proc_cgroup));
    while (true) {
      const auto quota =
          QuotaAt(std::string(mount.folder) + std::string(below), mount.version2, read);
      if (quota && (!least || *quota < *least)) least = quota;
      if (below.empty()) break;
      below = below.substr(0, below.rfind('/'));
    }
  }
  return least;
}

std::optional<double> OwnCpuQuota() {
  return CpuQuotaOf(ReadWholeFile("/proc/self/mountinfo"), ReadWholeFile("/proc/self/cgroup"),
                    ReadWholeFile);
}

uint32_t UsableCpus(uint32_t allowed, std::optional<double> quota) {
  if (quota && *quota < allowed) allowed = static_cast<uint32_t>(*quota);
  return std::max(1U, allowed);
}

}  // namespace hvd
