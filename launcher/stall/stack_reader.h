// StackReader: what the Python of each worker of this host does just now, for hvdrun dump --stacks
// and --native. Read from outside by py-spy, whatever the script uses.
//
// One thread, that of the io_context; it never waits.
#ifndef HVD_LAUNCHER_STALL_STACK_READER_H_
#define HVD_LAUNCHER_STALL_STACK_READER_H_

#include <sys/types.h>

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/process/one_process.h"
#include "launcher/stall/outside_stacks.h"
#include "launcher/wire/messages.h"

namespace hvd {

// The process of `root` and those below it that runs Python, the nearest one first: the rank behind
// `sh -c`, `uv run` or `conda run`. `root` itself where none does. Pure.
pid_t PythonBelow(pid_t root, const std::vector<ProcessInfo>& all,
                  const std::function<bool(pid_t)>& runs_python);
bool RunsPython(pid_t pid);
// Why what py-spy wrote has no stacks, without a subject; empty: it has. Null: it was not asked.
std::string WhyNoStacks(const std::string* text, bool installed);

class StackReader {
 public:
  // The number of each worker that runs, and its process.
  using Workers = std::vector<std::pair<uint32_t, pid_t>>;

  StackReader(asio::io_context& io, std::function<void(const ToDriver&)> send)
      : outside_(io), send_(std::move(send)) {}

  // Answered by StacksReply; a question that has no answer yet is forgotten.
  void Answer(const AskStacks& question, const Workers& workers);

 private:
  OutsideStacks outside_;
  const std::function<void(const ToDriver&)> send_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_STACK_READER_H_
