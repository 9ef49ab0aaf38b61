// The folder for the pipes and dumps of PyTorch's flight recorders of an agent's workers: <job
// id>-<pid of the agent's warden>, in the temporary folder.
#ifndef HVD_LAUNCHER_PROCESS_RECORDER_FOLDER_H_
#define HVD_LAUNCHER_PROCESS_RECORDER_FOLDER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace hvd {

inline constexpr const char* kRecorderFolder = "/hvdrun-flight-";

std::string RecorderFolder(const std::string& job_id, pid_t warden);
// Creates it for its owner only. False: it cannot be created, or exists.
bool MakeRecorderFolder(const std::string& folder);
// Prefix of the names of a worker's files; the rank follows.
std::string RecorderStem(const std::string& folder, uint32_t worker);
// Removes the pipes, and the folder if it is empty then: dumps stay.
void RemoveRecorderFolder(const std::string& folder);
// The same for all agents of a job that has ended.
void RemoveRecorderFolders(const std::string& job_id);

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_RECORDER_FOLDER_H_
