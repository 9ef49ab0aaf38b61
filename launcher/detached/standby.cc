#include "launcher/detached/standby.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "launcher/process/links/record_link.h"
#include "runtime/base/output_file.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

// Records the calling process as the standby, or as hvdrun once it has taken over. False: the
// record cannot be written.
bool NoteSelf(const DetachedJob& job, const char* file) {
  DetachedJob self = job;
  self.driver = ::getpid();
  if (const auto process = LookAtProcess(self.driver))
    self.driver_start_ticks = process->start_ticks;
  return WriteWholeFile(job.PathOf(file), DetachedJobJson(self)).ok();
}

}  // namespace

Result<Succession> BeginSuccession(DetachedJob job) {
  Succession succession;
  for (;;) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return SystemError("cannot make a socket pair", errno);
    UniqueFd ours(ends[0]), theirs(ends[1]);
    const pid_t between = ::fork();
    if (between < 0) return SystemError("cannot start a process", errno);
    if (between > 0) {
      theirs.Reset();
      int status = 0;
      while (::waitpid(between, &status, 0) < 0 && errno == EINTR) {
      }
      // Its keeper must find it, even if the job is short.
      char ready = 0;
      while (::read(ours.get(), &ready, 1) < 0 && errno == EINTR) {
      }
      if (ready == 0) return Internal("the standby could not be recorded");
      // Recorded as hvdrun only once it may be killed. On a full disk the other file still names
      // its standby.
      if (succession.record) (void)NoteSelf(job, "job");
      succession.link = std::move(ours);
      return succession;
    }
    if (::fork() != 0) ::_exit(0);  // the standby alone holds the other end
    ours.Reset();
    succession.link.Reset();
    ::setsid();
    // Signals that ask hvdrun to end during the takeover are handled by the driver.
    sigset_t held;
    ::sigemptyset(&held);
    for (int signal : {SIGINT, SIGTERM}) ::sigaddset(&held, signal);
    ::sigprocmask(SIG_BLOCK, &held, nullptr);
    if (!NoteSelf(job, "standby")) ::_exit(0);  // its keeper would not know about it
    (void)!::write(theirs.get(), "r", 1);
    // If its hvdrun is killed before it leaves a record, the record of its predecessor holds.
    if (std::optional<std::string> last = ReadLastRecord(theirs.get()))
      succession.record = std::move(last);
    if (!succession.record || ReadExitCode(job)) ::_exit(0);
  }
}

}  // namespace hvd
