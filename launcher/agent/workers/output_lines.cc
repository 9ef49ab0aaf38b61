#include "launcher/agent/workers/output_lines.h"

#include <chrono>

namespace hvd {
namespace {

// A line without an end that a person may have to answer (a prompt) is shown after this time.
constexpr auto kPromptWait = std::chrono::milliseconds(50);

}  // namespace

void OutputLines::Add(bool prompts) { slots_.emplace_back().prompts = prompts; }

void OutputLines::Take(uint32_t slot, OutputStream stream, std::string_view bytes) {
  Slot& s = slots_[slot];
  if (stream == OutputStream::kStderr) s.last_stderr.Add(bytes);
  LineBuffer::Ready ready = s.lines[static_cast<int>(stream)].Add(bytes);
  forward_(slot, stream, ready.held, ready.bytes);
  ShowPromptSoon(s);
}

void OutputLines::Flush(uint32_t slot, OutputStream stream) {
  const std::string line = slots_[slot].lines[static_cast<int>(stream)].Flush();
  forward_(slot, stream, line, {});
}

// A rank that has the terminal may wait for an answer: `(Pdb) `, input("...").
void OutputLines::ShowPromptSoon(const Slot& slot) {
  if (!slot.prompts || prompt_due_) return;
  if (slot.lines[0].empty() && slot.lines[1].empty()) return;
  prompt_due_ = true;
  prompt_timer_.expires_after(kPromptWait);
  prompt_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) ShowPrompts();
  });
}

void OutputLines::ShowPrompts() {
  prompt_due_ = false;
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot].prompts) continue;
    for (OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr}) Flush(slot, stream);
  }
}

}  // namespace hvd
