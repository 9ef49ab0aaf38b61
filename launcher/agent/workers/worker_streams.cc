#include "launcher/agent/workers/worker_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace hvd {
namespace {

// Delay after which an unfinished line that may be a prompt is shown.
constexpr auto kPromptWait = std::chrono::milliseconds(50);

}  // namespace

void OutputLines::Add(bool prompts) { slots_.emplace_back().prompts = prompts; }

void OutputLines::Append(uint32_t slot, OutputStream stream, std::string_view bytes) {
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

// Only the writing end is non-blocking: the worker's stdin must be an ordinary one.
UniqueFd StdinFeeder::AddPipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return UniqueFd();
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  if (::fcntl(write_end.get(), F_SETFL, O_NONBLOCK) != 0) return UniqueFd();
  auto pipe = std::make_shared<Pipe>(io_);
  pipe->end.assign(write_end.Release());
  pipes_.push_back(std::move(pipe));
  return read_end;
}

void StdinFeeder::Feed(std::string_view bytes) {
  fed_ += bytes.size();
  if (bytes.empty()) ended_ = true;
  for (const auto& pipe : pipes_) {
    if (!pipe->end.is_open()) continue;
    pipe->pending += bytes;
    Push(pipe);
  }
  ReportTaken();
}

void StdinFeeder::Push(const std::shared_ptr<Pipe>& pipe) {
  size_t written = 0;
  bool reads = true;  // at least one process does
  while (written < pipe->pending.size() && !pipe->waiting && reads) {
    ssize_t n = ::write(pipe->end.native_handle(), pipe->pending.data() + written,
                        pipe->pending.size() - written);
    if (n >= 0) {
      written += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      pipe->waiting = true;
      pipe->end.async_wait(asio::posix::stream_descriptor::wait_write,
                           [this, pipe](const asio::error_code& error) {
                             pipe->waiting = false;
                             if (error) return;
                             Push(pipe);
                             ReportTaken();
                           });
    } else if (errno != EINTR) {
      reads = false;
    }
  }
  pipe->pending.erase(0, written);
  if (reads && !(ended_ && pipe->pending.empty())) return;
  pipe->pending.clear();
  pipe->end.close();
}

// Once no worker reads, reports nothing, so that the driver reads no more: endless input would
// otherwise be read until the end of the job and beyond.
void StdinFeeder::ReportTaken() {
  size_t pending = 0;
  bool any_open = false;
  for (const auto& pipe : pipes_) {
    pending = std::max(pending, pipe->pending.size());
    any_open = any_open || pipe->end.is_open();
  }
  if (!any_open) return;
  uint64_t taken = fed_ - pending;
  if (taken == reported_) return;
  on_taken_(taken - std::exchange(reported_, taken));
}

}  // namespace hvd
