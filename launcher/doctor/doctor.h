// The doctor: examines hosts over the lines to their agents (agent_connection.h), as examination.h
// says, and prints what it found. One thread, beside those that channels have.
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

// Returns hvdrun's exit code when nothing of it is left: 0, 1 when some host cannot be used, 128 +
// n after signal n.
int RunDoctor(DoctorOptions options, ChannelFactory& channels);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_DOCTOR_H_
