// The doctor: examines hosts over the connections to their agents (agent_connection.h,
// examination.h) and prints the report. One thread, apart from those of channels.
#ifndef HVD_LAUNCHER_DOCTOR_DOCTOR_H_
#define HVD_LAUNCHER_DOCTOR_DOCTOR_H_

#include <string>

#include "launcher/channels/factory/channel_factory.h"
#include "launcher/doctor/examination.h"

namespace hvd {

struct DoctorOptions {
  std::string job_id;
  ExaminationOptions examination;
  int heartbeat_timeout_seconds = 5;
  bool json = false;
};

// Blocks until all agents are gone. Returns the exit code: 0; 1 if a host cannot be used; 128 + n
// after signal n.
int RunDoctor(DoctorOptions options, ChannelFactory& channels);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_DOCTOR_H_
