#include "launcher/channels/ssh/known_hosts_files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>

#include "launcher/process/proc_file.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr size_t kSaltBytes = 20;

std::string RandomSalt() {
  std::string salt(kSaltBytes, '\0');
  [[maybe_unused]] ssize_t got = ::getrandom(salt.data(), salt.size(), 0);
  return salt;
}

std::string LineFor(const SshConfig& config, std::string_view key) {
  KnownHostsName name = NameInKnownHosts(config);
  return config.hash_known_hosts ? HashedKnownHostsLine(name.host, name.port, key, RandomSalt())
                                 : KnownHostsLine(name.host, name.port, key);
}

// A last line without its end would swallow ours.
bool EndsInsideALine(int fd) {
  struct stat info {};
  char last = '\n';
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return false;
  return ::pread(fd, &last, 1, info.st_size - 1) == 1 && last != '\n';
}

}  // namespace

std::vector<std::string> KnownHostsFiles::FilesOf(const SshConfig& config) {
  std::vector<std::string> files = config.user_known_hosts_files;
  files.insert(files.end(), config.global_known_hosts_files.begin(),
               config.global_known_hosts_files.end());
  return files;
}

const KnownHosts& KnownHostsFiles::Of(const SshConfig& config) {
  auto [entry, is_new] = read_.try_emplace(FilesOf(config));
  if (!is_new) return entry->second;
  for (const std::string& file : entry->first) {
    entry->second.Add(ReadSmallFile(file), file);
  }
  return entry->second;
}

Status KnownHostsFiles::Accept(const SshConfig& config, std::string_view key) {
  if (config.user_known_hosts_files.empty())
    return InvalidArgument("UserKnownHostsFile names no file to write the new host key to");
  const std::string& file = config.user_known_hosts_files.front();
  std::string line = LineFor(config, key);
  if (line.empty()) return InvalidArgument("no line of known_hosts can hold this host's name");
  if (size_t slash = file.rfind('/'); slash != std::string::npos && slash > 0)
    ::mkdir(file.substr(0, slash).c_str(), 0700);
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return SystemError("the new host key cannot be written to " + file, errno);
  std::string text = (EndsInsideALine(fd.get()) ? "\n" : "") + line;
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return SystemError("the new host key cannot be written to " + file, errno);
  read_[FilesOf(config)].Add(line, file);
  return Status::Ok();
}

}  // namespace hvd
