// Querying a driver for the state of its job: it listens at an abstract unix address that contains
// the job's id, and writes two numbers to every process of its user (or root) that connects. So
// `hvdrun ps` sees a job whose ranks are all on other hosts. Nothing is read from the client, and
// no file is created.
#ifndef HVD_LAUNCHER_PROCESS_JOBS_DRIVER_STATUS_H_
#define HVD_LAUNCHER_PROCESS_JOBS_DRIVER_STATUS_H_

#include <sys/types.h>

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/process/links/link_listener.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

struct JobCounts {
  uint32_t size = 0;   // ranks of the job
  uint32_t alive = 0;  // running ranks on all hosts
};

// The driver's side. One thread, that of the io_context.
class DriverStatusListener {
 public:
  DriverStatusListener(asio::io_context& io, std::function<JobCounts()> counts);

  // If it fails, the job is listed by its processes on this machine only.
  Status Open(const std::string& job_id);

 private:
  void Answer(const LinkClient& client);

  std::function<JobCounts()> counts_;
  LinkListener listener_;
};

// A driver of this user in this network namespace.
struct DriverReply {
  std::string job;
  pid_t pid = 0;
  std::optional<JobCounts> counts;  // none: no answer in time
};

// Queries all drivers; waits at most `limit` in total.
std::vector<DriverReply> AskDrivers(Duration limit);

// The ids of jobs with a listening driver, from the text of /proc/net/unix, without duplicates.
// Pure.
std::vector<std::string> DriversIn(std::string_view unix_sockets);

// The text that the driver writes, and its reader. Pure.
std::string JobCountsText(const JobCounts& counts);
std::optional<JobCounts> ParseJobCounts(std::string_view text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_JOBS_DRIVER_STATUS_H_
