#include "launcher/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hvd {

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

OutputWriter::OutputWriter(int fd, std::function<void(std::vector<OutputReceipt>)> on_written)
    : fd_(fd), on_written_(std::move(on_written)) {}

OutputWriter::~OutputWriter() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void OutputWriter::Take(std::string& text, OutputReceipt receipt) {
  if (text.empty() && receipt.log_bytes == 0) return;
  {
    std::lock_guard lock(mutex_);
    if (queued_.empty()) {
      queued_.swap(text);
    } else {
      queued_ += text;
    }
    text.clear();
    receipts_.push_back(receipt);
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  }
  changed_.notify_all();
}

void OutputWriter::Flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return receipts_.empty() && !writing_; });
}

void OutputWriter::FlushFor(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return receipts_.empty() && !writing_; });
}

void OutputWriter::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !receipts_.empty(); });
    if (receipts_.empty()) return;
    writing_text_.clear();
    writing_text_.swap(queued_);
    std::vector<OutputReceipt> receipts = std::exchange(receipts_, {});
    writing_ = true;
    lock.unlock();
    // When nobody reads any more, workers go on all the same and their output goes nowhere.
    if (error_ == 0 && !WriteAll(fd_, writing_text_)) error_ = errno;
    on_written_(std::move(receipts));
    lock.lock();
    writing_ = false;
    changed_.notify_all();
  }
}

}  // namespace hvd
