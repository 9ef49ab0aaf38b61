// StdinReader: reads hvdrun's stdin on its own thread: the descriptor is shared with the shell, so
// it is never made non-blocking. Reads only as much as the owner allows, and from a terminal only
// while hvdrun is in the foreground.
#ifndef HVD_LAUNCHER_OUTPUT_STDIN_READER_H_
#define HVD_LAUNCHER_OUTPUT_STDIN_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "configs/choices.h"

namespace hvd {

// Whether the agent of this machine inherits hvdrun's stdin for rank 0: reading ahead would steal
// input that a shell loop has yet to read. A terminal is read by hvdrun, which is in its
// foreground.
bool PassesStdin(StdinTo stdin_to);

// True if there is certainly nothing to read, as for /dev/null.
bool IsEmptyInput(int fd);

class StdinReader {
 public:
  // `on_bytes` runs on the reading thread, never after the destructor; empty bytes mean end of
  // file. `fd` is not owned.
  StdinReader(int fd, uint64_t allowed_bytes, std::function<void(std::string)> on_bytes);
  ~StdinReader();  // does not block

  // Allows reading `bytes` more.
  void Allow(uint64_t bytes);

 private:
  struct Shared;
  static void Run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;  // shared with the thread
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_STDIN_READER_H_
