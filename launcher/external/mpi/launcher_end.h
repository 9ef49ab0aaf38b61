// How mpirun or jsrun ended, and its words about that. Pure.
#ifndef HVD_LAUNCHER_EXTERNAL_MPI_LAUNCHER_END_H_
#define HVD_LAUNCHER_EXTERNAL_MPI_LAUNCHER_END_H_

#include <string>

#include "launcher/channels/command_channel.h"

namespace hvd {

struct LauncherEnd {
  std::string reason;      // "ended with exit code 1"
  std::string words;       // what it said, in short; empty: nothing
  int exit_code = 0;       // as a shell would show it
  bool by_signal = false;  // of somebody else than hvdrun
};

LauncherEnd ReadLauncherEnd(const CommandEnd& end);

// The first paragraph of what it said, on one line and safe to print: later ones give advice.
std::string FirstWords(const std::string& said);

}  // namespace hvd

#endif  // HVD_LAUNCHER_EXTERNAL_MPI_LAUNCHER_END_H_
