// The pipes between hvdrun attach and the host of a job: bytes to and from ssh, of which neither
// keeps this process waiting.
#ifndef HVD_LAUNCHER_DETACHED_VIEWER_PIPES_H_
#define HVD_LAUNCHER_DETACHED_VIEWER_PIPES_H_

#include <string>

namespace hvd {

// From here on reading and writing do not wait.
void MakeNonblocking(int fd);
// Takes from `outgoing` what is written now. False: the other side is gone.
bool SendSome(int fd, std::string* outgoing);
// What has come by now, a piece of it at most; empty: nothing. False: the other side is gone.
bool ReceiveSome(int fd, std::string* bytes);

}  // namespace hvd

#endif  // HVD_LAUNCHER_DETACHED_VIEWER_PIPES_H_
