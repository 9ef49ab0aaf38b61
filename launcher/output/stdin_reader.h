// StdinReader: the input that is typed or piped into hvdrun, read by a thread of its own: the
// descriptor is shared with the shell, so it is never made non-blocking. Reads only as much as the
// owner allows, and from a terminal only while hvdrun is in its foreground.
#ifndef HVD_LAUNCHER_OUTPUT_STDIN_READER_H_
#define HVD_LAUNCHER_OUTPUT_STDIN_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "configs/choices.h"

namespace hvd {

// Whether the agent of this machine gets hvdrun's stdin itself, for rank 0, if it has that: hvdrun
// must not read ahead of a rank what a loop of the shell is still to read. A terminal is read by
// hvdrun, which is in its foreground.
bool PassesStdin(StdinTo stdin_to);

// True when there is certainly nothing to read: /dev/null.
bool IsEmptyInput(int fd);

class StdinReader {
 public:
  // `on_bytes` runs on the reading thread, never after the destructor; empty bytes are the end.
  // `fd` is not owned.
  StdinReader(int fd, uint64_t allowed_bytes, std::function<void(std::string)> on_bytes);
  ~StdinReader();  // waits for nobody

  // So many bytes more may be read.
  void Allow(uint64_t bytes);

 private:
  struct Shared;
  static void Run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;  // with the thread
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_STDIN_READER_H_
