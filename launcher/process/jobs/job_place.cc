#include "launcher/process/jobs/job_place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "launcher/process/one_process.h"
#include "launcher/process/proc_file.h"
#include "launcher/process/process_tree.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr char kSeparator = '/', kBetweenParents = ',';
constexpr size_t kMostParents = 256;

// Removes and returns the text up to the separator, which is removed, too.
std::string_view PopField(std::string_view& text, char separator) {
  size_t end = std::min(text.find(separator), text.size());
  std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

bool ProcIsOurs() {
  char self[32] = {};
  return ::readlink("/proc/self", self, sizeof self - 1) > 0 && std::to_string(::getpid()) == self;
}

}  // namespace

std::optional<JobPlace> PlaceHere() {
  JobPlace place;
  place.boot = ReadProcFile("sys/kernel/random/boot_id");
  place.boot.resize(std::min(place.boot.find('\n'), place.boot.size()));
  struct stat space {};
  if (!ProcIsOurs() || place.boot.empty() || ::stat("/proc/self/ns/pid", &space) != 0)
    return std::nullopt;
  place.pid_namespace = std::to_string(space.st_ino);
  place.user = ::geteuid();
  for (pid_t parent = ::getppid(); parent > 0 && place.parents.size() < kMostParents;) {
    place.parents.push_back(parent);
    std::optional<ProcessInfo> info = LookAtProcess(parent);
    parent = info ? info->parent : 0;
  }
  // The first process of the namespace, which adopts orphans that entered it from outside.
  if (place.parents.empty() || place.parents.back() != 1) place.parents.push_back(1);
  return place;
}

std::string JobPlaceText(const JobPlace& place) {
  std::string text = place.boot + kSeparator + place.pid_namespace + kSeparator +
                     std::to_string(place.user) + kSeparator;
  for (size_t i = 0; i < place.parents.size(); ++i)
    text += (i == 0 ? "" : std::string(1, kBetweenParents)) + std::to_string(place.parents[i]);
  return text;
}

std::optional<JobPlace> ParseJobPlace(std::string_view text) {
  JobPlace place;
  place.boot = PopField(text, kSeparator);
  place.pid_namespace = PopField(text, kSeparator);
  const auto user = ParseWhole<uid_t>(PopField(text, kSeparator));
  if (place.boot.empty() || place.pid_namespace.empty() || !user) return std::nullopt;
  place.user = *user;
  while (!text.empty() && place.parents.size() < kMostParents) {
    const auto parent = ParseWhole<pid_t>(PopField(text, kBetweenParents));
    if (!parent) return std::nullopt;
    place.parents.push_back(*parent);
  }
  return place;
}

}  // namespace hvd
