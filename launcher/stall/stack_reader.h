// StackReader: reads the current Python stacks of each worker of this host, for hvdrun dump
// --stacks and --native, from outside by py-spy.
//
// One thread, that of the io_context; never blocks.
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

// The process nearest to `root`, among itself and its descendants, that runs Python: the rank
// behind `sh -c`, `uv run` or `conda run`. `root` if none does. Pure.
pid_t PythonBelow(pid_t root, const std::vector<ProcessInfo>& all,
                  const std::function<bool(pid_t)>& runs_python);
bool RunsPython(pid_t pid);
// Why py-spy's output `text` has no stacks, as a predicate without its subject; empty: it has
// stacks. Null: py-spy did not run.
std::string WhyNoStacks(const std::string* text, bool installed);

class StackReader {
 public:
  // Number and process of each running worker.
  using Workers = std::vector<std::pair<uint32_t, pid_t>>;

  StackReader(asio::io_context& io, std::function<void(const ToDriver&)> send)
      : outside_(io), send_(std::move(send)) {}

  // Sends StacksReply; cancels an unanswered question.
  void Answer(const AskStacks& question, const Workers& workers);

 private:
  OutsideStacks outside_;
  const std::function<void(const ToDriver&)> send_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_STACK_READER_H_
