#include "launcher/detached/shown.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "launcher/detached/detached_job.h"
#include "launcher/process/jobs/job_id.h"
#include "launcher/process/proc_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

// "OFFSET LINE\n", and whatever comes after it.
std::optional<LogPlace> PlaceInText(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  const size_t blank = text.find(' ');
  if (blank == text.npos) return std::nullopt;
  const auto offset = ParseWhole<uint64_t>(text.substr(0, blank));
  const auto line = ParseWhole<uint64_t>(text.substr(blank + 1));
  if (!offset || !line) return std::nullopt;
  return LogPlace{*offset, *line};
}

// Fixed length, so that one write replaces all of it.
std::string TextOf(LogPlace place) { return Format("{:020} {:020}\n", place.offset, place.line); }

void RemoveOldRecords(const std::string& folder, size_t most) {
  std::vector<std::pair<timespec, std::string>> records;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    struct stat facts {};
    if (ParseJobId(at->path().filename()) && ::lstat(at->path().c_str(), &facts) == 0)
      records.emplace_back(facts.st_mtim, at->path());
  }
  if (records.size() <= most) return;
  std::ranges::sort(records, [](const auto& a, const auto& b) {
    return std::tie(a.first.tv_sec, a.first.tv_nsec) < std::tie(b.first.tv_sec, b.first.tv_nsec);
  });
  for (size_t i = 0; i + most < records.size(); ++i) ShownRecord(records[i].second).Remove();
}

}  // namespace

LogPlace ShownRecord::Read() const {
  return PlaceInText(ReadSmallFile(path_)).value_or(LogPlace{});
}

// Takes a shared lock: whoever wants to remove the file needs an exclusive one.
bool ShownRecord::Open() {
  while (!file_.valid()) {
    UniqueFd file(
        ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    struct stat facts {};
    if (!file.valid() || ::flock(file.get(), LOCK_SH) != 0 || ::fstat(file.get(), &facts) != 0)
      return false;
    if (facts.st_nlink > 0) file_ = std::move(file);  // else it was removed just before the lock
  }
  return true;
}

bool ShownRecord::Grow(LogPlace place) {
  if (!Open()) return false;
  const std::string text = TextOf(place);
  std::string now(text.size(), '\0');
  const ssize_t got = ::pread(file_.get(), now.data(), now.size(), 0);
  now.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  const std::optional<LogPlace> known = PlaceInText(now);
  if (known && known->offset >= place.offset) return true;
  return ::pwrite(file_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

void ShownRecord::Remove() {
  UniqueFd file = std::move(file_);
  if (!file.valid()) file.Reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path_.c_str());
}

Result<ShownRecord> OwnShownRecord(const std::string& jobs, const std::string& job_id) {
  if (!ParseJobId(job_id)) return InvalidArgument("no job has the id " + job_id);
  if (jobs.empty()) return InvalidArgument("neither XDG_STATE_HOME nor HOME is set");
  const std::string folder = std::filesystem::path(jobs).parent_path() / "shown";
  HVD_RETURN_IF_ERROR(MakePrivateFolder(folder, "cannot make"));
  RemoveOldRecords(folder, kMostOwnRecords - 1);
  return ShownRecord(folder + "/" + job_id);
}

}  // namespace hvd
