// The folder in which the workers of an agent have the pipes and the dumps of PyTorch's flight
// recorder: <job id>-<pid of the agent's warden>, in the folder for temporary files.
#ifndef HVD_LAUNCHER_PROCESS_RECORDER_FOLDER_H_
#define HVD_LAUNCHER_PROCESS_RECORDER_FOLDER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace hvd {

inline constexpr const char* kRecorderFolder = "/hvdrun-flight-";

std::string RecorderFolder(const std::string& job_id, pid_t warden);
// For its owner only. False when it cannot be made, or is there already.
bool MakeRecorderFolder(const std::string& folder);
// With what the names of a worker's files begin; the rank follows.
std::string RecorderStem(const std::string& folder, uint32_t worker);
// The pipes, and the folder where nothing else is in it: dumps stay.
void RemoveRecorderFolder(const std::string& folder);
// Of all agents of a job that is over.
void RemoveRecorderFolders(const std::string& job_id);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_RECORDER_FOLDER_H_
