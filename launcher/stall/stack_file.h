// The file in the memory of a worker into which its own handler writes the Python stacks of its
// threads when a signal comes (stall_board.h). Read from outside.
#ifndef HVD_LAUNCHER_STALL_STACK_FILE_H_
#define HVD_LAUNCHER_STALL_STACK_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "runtime/segment/stall_board.h"

namespace hvd {

// Asks the process for its stacks. Returns where they will begin in the file; -1: it has no such
// handler, or does not let us see its file.
int64_t AskForStacks(pid_t pid, const StallBoard& board);
// The text that the handler has written since `from`.
std::string ReadStacks(pid_t pid, const StallBoard& board, int64_t from);

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_STACK_FILE_H_
