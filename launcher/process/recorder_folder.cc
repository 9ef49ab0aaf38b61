#include "launcher/process/recorder_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "runtime/base/env.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

std::string TemporaryFolder() { return GetEnv("TMPDIR").value_or("/tmp"); }

}  // namespace

std::string RecorderFolder(const std::string& job_id, pid_t warden) {
  return Format("{}{}{}-{}", TemporaryFolder(), kRecorderFolder, job_id, warden);
}

bool MakeRecorderFolder(const std::string& folder) { return ::mkdir(folder.c_str(), 0700) == 0; }

std::string RecorderStem(const std::string& folder, uint32_t worker) {
  return Format("{}/{}.", folder, worker);
}

void RemoveRecorderFolder(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".pipe") (void)::unlink(entry->path().c_str());
  }
  (void)::rmdir(folder.c_str());
}

void RemoveRecorderFolders(const std::string& job_id) {
  const std::string begin = TemporaryFolder() + kRecorderFolder + job_id + "-";
  std::error_code error;
  for (std::filesystem::directory_iterator entry(TemporaryFolder(), error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->path().string().starts_with(begin)) RemoveRecorderFolder(entry->path().string());
  }
}

}  // namespace hvd
