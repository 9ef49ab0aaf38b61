// SuccessorRecord: leaves a record of the job with the standby (takeover_record.h), which goes on
// with the job if this hvdrun is killed. It is left before anything is done about a decision, where
// the next hvdrun must do what this one did not.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_SUCCESSOR_RECORD_H_
#define HVD_LAUNCHER_DRIVER_SUCCESSOR_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "launcher/driver/agent_network.h"
#include "launcher/driver/driver_options.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/driver/last_output.h"
#include "launcher/driver/takeover/takeover_record.h"
#include "launcher/job/state/job_state.h"
#include "runtime/base/clock.h"

namespace hvd {

class SuccessorRecord {
 public:
  // All of them outlive this object. `begun`: when the job was. `interrupts`: the signals that
  // asked it to end, in order.
  SuccessorRecord(const DriverOptions& options, const JobState& state, TimePoint begun,
                  const std::vector<int32_t>& interrupts, const JobHosts& hosts,
                  const AgentNetwork& network, const LastOutput& last_output)
      : options_(options),
        state_(state),
        begun_(begun),
        interrupts_(interrupts),
        hosts_(hosts),
        network_(network),
        last_output_(last_output),
        link_(options.successor_link) {}

  // After each Step of an elastic job, before its actions: the whole state, if it has changed.
  void LeaveState(const JobEvent& event, const Decision& decision);
  // After the actions of each Step of a job of fixed size: what agents do not know, if it has
  // changed.
  void LeaveChanges();

 private:
  TakeoverRecord Begin() const;
  void Leave(const TakeoverRecord& record);

  const DriverOptions& options_;
  const JobState& state_;
  const TimePoint begun_;
  const std::vector<int32_t>& interrupts_;
  const JobHosts& hosts_;
  const AgentNetwork& network_;
  const LastOutput& last_output_;
  int link_;  // to the standby; -1: there is none, or no more
  // What the last record says, of a job of fixed size and of an elastic one.
  std::optional<std::tuple<size_t, bool, JobPhase>> left_;
  std::string left_state_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_SUCCESSOR_RECORD_H_
