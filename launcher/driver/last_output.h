// The last block that hvdrun prints about a job, and the error file of one that has failed.
#ifndef HVD_LAUNCHER_DRIVER_LAST_OUTPUT_H_
#define HVD_LAUNCHER_DRIVER_LAST_OUTPUT_H_

#include <string>

#include "launcher/driver/driver_options.h"
#include "launcher/driver/hang_watch.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/job/state/job_state.h"
#include "launcher/output/screen.h"

namespace hvd {

class LastOutput {
 public:
  // All of them outlive this object.
  LastOutput(const DriverOptions& options, const JobState& state, const JobHosts& hosts,
             const HangWatch& hangs, const Screen& screen)
      : options_(options), state_(state), hosts_(hosts), hangs_(hangs), screen_(screen) {}

  // The report on the end of the job, with the line of its exit code.
  std::string Text() const;
  // Writes the error file of a job that failed; the sentence if it cannot, else "".
  std::string WriteErrorFileIfFailed() const;

 private:
  std::string Hint() const;

  const DriverOptions& options_;
  const JobState& state_;
  const JobHosts& hosts_;
  const HangWatch& hangs_;
  const Screen& screen_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_LAST_OUTPUT_H_
