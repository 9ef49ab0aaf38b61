// The streams of an agent's workers. One thread, that of the io_context.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_WORKER_STREAMS_H_
#define HVD_LAUNCHER_AGENT_WORKERS_WORKER_STREAMS_H_

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/output/lines.h"
#include "launcher/wire/messages.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

// OutputLines: the output of the workers of an agent, by slot, passed on in whole lines. A line
// without an end is passed on when its stream ends, and, where a person at a terminal may have to
// answer it, after 50 ms.
class OutputLines {
 public:
  // The two pieces follow each other.
  using Forward = std::function<void(uint32_t slot, OutputStream stream, std::string_view first,
                                     std::string_view second)>;

  OutputLines(asio::io_context& io, Forward forward)
      : forward_(std::move(forward)), prompt_timer_(io) {}

  // One more slot, behind the others. `prompts`: its worker reads the keys of a terminal.
  void Add(bool prompts);
  // Of stdout and stderr.
  void Append(uint32_t slot, OutputStream stream, std::string_view bytes);
  // Passes on a line without an end.
  void Flush(uint32_t slot, OutputStream stream);
  // The end of what the worker wrote to stderr, for the report.
  std::string LastOutput(uint32_t slot) const { return slots_[slot].last_stderr.Text(); }

 private:
  struct Slot {
    bool prompts = false;
    LineBuffer lines[2];
    LastLines last_stderr;
  };

  void ShowPromptSoon(const Slot& slot);
  void ShowPrompts();

  const Forward forward_;
  asio::steady_timer prompt_timer_;
  bool prompt_due_ = false;
  std::vector<Slot> slots_;
};

// StdinFeeder: writes the stdin of hvdrun into pipes that are the stdin of workers. Never blocks:
// bytes that a pipe does not accept are buffered, at most as many as the driver sends before
// earlier ones are reported as taken.
class StdinFeeder {
 public:
  // `on_taken` gets how many more bytes the slowest pipe has taken.
  StdinFeeder(asio::io_context& io, std::function<void(uint64_t)> on_taken)
      : io_(io), on_taken_(std::move(on_taken)) {}

  // Makes a pipe for one more worker and returns the end that the worker reads from. Invalid when
  // no pipe can be made (errno).
  UniqueFd AddPipe();
  // Into every pipe; empty: the end of all of them.
  void Feed(std::string_view bytes);

 private:
  struct Pipe {
    explicit Pipe(asio::io_context& io) : end(io) {}
    asio::posix::stream_descriptor end;
    std::string pending;
    bool waiting = false;
  };

  void Push(const std::shared_ptr<Pipe>& pipe);
  void ReportTaken();

  asio::io_context& io_;
  std::function<void(uint64_t)> on_taken_;
  std::vector<std::shared_ptr<Pipe>> pipes_;
  uint64_t fed_ = 0, reported_ = 0;
  bool ended_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_WORKER_STREAMS_H_
