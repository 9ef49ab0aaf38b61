// OutputLines: the output of the workers of an agent, by slot, passed on in whole lines. A line
// without an end is passed on when its stream ends, and, where a person at a terminal may have to
// answer it, after 50 ms.
//
// One thread, that of the io_context.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_OUTPUT_LINES_H_
#define HVD_LAUNCHER_AGENT_WORKERS_OUTPUT_LINES_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/output/lines.h"
#include "launcher/wire/messages.h"

namespace hvd {

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
  void Take(uint32_t slot, OutputStream stream, std::string_view bytes);
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

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_OUTPUT_LINES_H_
