// The pipes between hvdrun attach and the host of a job: non-blocking reads and writes of ssh's
// stdin and stdout.
#ifndef HVD_LAUNCHER_DETACHED_VIEWER_PIPES_H_
#define HVD_LAUNCHER_DETACHED_VIEWER_PIPES_H_

#include <string>

namespace hvd {

// Makes reads and writes of `fd` non-blocking.
void MakeNonblocking(int fd);
// Writes what fits and removes it from `outgoing`. False: the other side is gone.
bool SendSome(int fd, std::string* outgoing);
// Reads at most one piece of what has arrived; empty: nothing. False: the other side is gone.
bool ReceiveSome(int fd, std::string* bytes);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_VIEWER_PIPES_H_
