#include "runtime/net/world_secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/env.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

std::string WithoutLineEnd(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

Status CheckOwner(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return InvalidArgument("is no file");
  if (file.st_uid != ::geteuid() && file.st_uid != 0)
    return InvalidArgument(Format("belongs to user {}", file.st_uid));
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  if ((file.st_mode & kOthers) != 0)
    return InvalidArgument("may be used by other users; chmod 600 takes that away");
  return Status::Ok();
}

Result<std::string> ReadSecret(const std::string& path) {
  // Opening a FIFO would block until there is a writer.
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0) {
    const int error = errno;
    return SystemError("cannot be read", error);
  }
  HVD_RETURN_IF_ERROR(CheckOwner(facts));
  std::string text(kMostSecret + 2, '\0');
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got < 0) {
    const int error = errno;
    return SystemError("cannot be read", error);
  }
  text.resize(static_cast<size_t>(got));
  return WithoutLineEnd(std::move(text));
}

Result<std::string> Checked(const std::string& where, const Result<std::string>& secret) {
  if (!secret.ok()) return InvalidArgument(where + " " + secret.status().message());
  if (secret->size() >= kLeastSecret && secret->size() <= kMostSecret) return *secret;
  return InvalidArgument(
      Format("{} has a secret of {} bytes; {} to {} are possible, and `openssl rand -hex 32` makes "
             "a good one",
             where, secret->size(), kLeastSecret, kMostSecret));
}

// Two numbers of 16 hexadecimal digits. Under another launcher Open MPI fills the variable with a
// guessable value, and only mpirun sets the other one.
bool IsOfMpirun(const std::string& key, bool by_mpirun) {
  constexpr size_t kDigits = 16;
  return by_mpirun && key.size() == 2 * kDigits + 1 && key[kDigits] == '-' &&
         key.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

}  // namespace

Result<std::string> FindWorldSecret(
    const std::function<std::optional<std::string>(const char* name)>& env) {
  if (std::string path = env(kSecretFile).value_or(""); !path.empty())
    return Checked(std::string(kSecretFile) + "=" + path, ReadSecret(path));
  if (std::string secret = env(kSecretVariable).value_or(""); !secret.empty())
    return Checked(kSecretVariable, secret);
  const std::string key = env("OMPI_MCA_orte_precondition_transports").value_or("");
  return IsOfMpirun(key, env("OMPI_MCA_orte_launch") == "1") ? key : std::string();
}

Result<std::string> FindWorldSecret() { return FindWorldSecret(GetEnv); }

}  // namespace hvd
