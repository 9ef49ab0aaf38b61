// The stderr of a rank that somebody else started. An adopting agent has none of its own: a
// launcher that waits for the end of its pipes would wait for the agent.
#ifndef HVD_LAUNCHER_EXTERNAL_ADOPT_RANK_STDERR_H_
#define HVD_LAUNCHER_EXTERNAL_ADOPT_RANK_STDERR_H_

#include <sys/types.h>

#include <string>

namespace hvd {

// Writes the text where the process writes its errors: a pipe, a file or a terminal. Never waits.
// False when nothing was written: the process is gone, belongs to somebody else, has a socket
// there, or its reader is behind.
bool WriteToStderrOf(pid_t pid, const std::string& text);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_ADOPT_RANK_STDERR_H_
