#include "launcher/output/output.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <thread>
#include <utility>

#include "runtime/base/mutex.h"

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

struct OutputWriter::Shared {
  int fd = -1;
  Mutex mutex;
  std::condition_variable changed;
  std::function<void(std::vector<OutputReceipt>)> on_written HVD_GUARDED_BY(mutex);
  std::string queued HVD_GUARDED_BY(mutex);
  std::vector<PrintedSpan> queued_spans HVD_GUARDED_BY(mutex);
  std::shared_ptr<PrintedOutput> printed;  // perhaps null
  std::vector<PrintedSpan> writing_spans;  // of writing_text
  std::string writing_text;                // of the thread alone while `writing`
  std::vector<OutputReceipt> receipts HVD_GUARDED_BY(mutex);
  bool begun HVD_GUARDED_BY(mutex) = false;
  bool writing HVD_GUARDED_BY(mutex) = false;
  bool stop HVD_GUARDED_BY(mutex) = false;
  bool given_up HVD_GUARDED_BY(mutex) = false;
  int error HVD_GUARDED_BY(mutex) = 0;
  std::atomic<size_t> left = 0;  // of writing_text

  bool idle() const HVD_REQUIRES(mutex) { return receipts.empty() && !writing; }
  // Writes in pieces, so that `left` is accurate.
  bool WriteText() {
    if (printed) return printed->Write(fd, writing_text, writing_spans);
    constexpr size_t kPiece = 64 * 1024;
    for (std::string_view text = writing_text; !text.empty();) {
      std::string_view piece = text.substr(0, kPiece);
      if (!WriteAll(fd, piece)) return false;
      text.remove_prefix(piece.size());
      left = text.size();
    }
    return true;
  }
};

OutputWriter::OutputWriter(int fd, std::function<void(std::vector<OutputReceipt>)> on_written,
                           std::shared_ptr<PrintedOutput> printed)
    : shared_(std::make_shared<Shared>()) {
  shared_->fd = fd;
  shared_->on_written = std::move(on_written);
  shared_->printed = std::move(printed);
}

OutputWriter::~OutputWriter() {
  MutexLock lock(shared_->mutex);
  if (shared_->given_up || !shared_->begun) return;
  shared_->changed.wait(lock, [this]() HVD_REQUIRES(shared_->mutex) { return shared_->idle(); });
  shared_->stop = true;
  shared_->on_written = nullptr;
  lock.unlock();
  shared_->changed.notify_all();
}

void OutputWriter::WriteAndClear(std::string& text, OutputReceipt receipt) {
  std::vector<PrintedSpan> none;
  WriteAndClear(text, none, receipt);
}

void OutputWriter::WriteAndClear(std::string& text, std::vector<PrintedSpan>& spans,
                                 OutputReceipt receipt) {
  if (text.empty() && receipt.log_bytes == 0) return;
  {
    MutexLock lock(shared_->mutex);
    for (PrintedSpan& span : spans) {
      span.begin += shared_->queued.size();
      span.end += shared_->queued.size();
      shared_->queued_spans.push_back(span);
    }
    spans.clear();
    if (shared_->queued.empty()) {
      shared_->queued.swap(text);
    } else {
      shared_->queued += text;
    }
    text.clear();
    shared_->receipts.push_back(receipt);
    // The thread is started by the first text: a job without output needs none. Detached: it may be
    // blocked in write() by a reader that has stopped.
    if (!shared_->begun) {
      std::thread([shared = shared_] { Run(shared); }).detach();
      shared_->begun = true;  // not if the thread could not be started
    }
  }
  shared_->changed.notify_all();
}

void OutputWriter::Flush() {
  MutexLock lock(shared_->mutex);
  shared_->changed.wait(lock, [this]() HVD_REQUIRES(shared_->mutex) { return shared_->idle(); });
}

bool OutputWriter::FlushFor(std::chrono::milliseconds limit) {
  MutexLock lock(shared_->mutex);
  return shared_->changed.wait_for(
      lock, limit, [this]() HVD_REQUIRES(shared_->mutex) { return shared_->idle(); });
}

size_t OutputWriter::GiveUp() {
  MutexLock lock(shared_->mutex);
  shared_->given_up = shared_->stop = true;
  shared_->on_written = nullptr;
  shared_->changed.notify_all();
  if (shared_->error != 0) return 0;
  return shared_->queued.size() + (shared_->writing ? shared_->left.load() : 0);
}

int OutputWriter::error() const {
  MutexLock lock(shared_->mutex);
  return shared_->error;
}

void OutputWriter::Run(const std::shared_ptr<Shared>& shared) {
  MutexLock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&]() HVD_REQUIRES(shared->mutex) {
      return shared->stop || !shared->receipts.empty();
    });
    if (shared->stop) return;
    shared->writing_text.clear();
    shared->writing_text.swap(shared->queued);
    shared->writing_spans = std::exchange(shared->queued_spans, {});
    std::vector<OutputReceipt> receipts = std::exchange(shared->receipts, {});
    shared->left = shared->writing_text.size();
    shared->writing = true;
    const bool broken = shared->error != 0;
    lock.unlock();
    // When the reader is gone, workers continue and their output is discarded.
    const int error = broken || shared->WriteText() ? 0 : errno;
    lock.lock();
    if (error != 0) shared->error = error;
    shared->writing = false;
    if (shared->on_written) shared->on_written(std::move(receipts));
    shared->changed.notify_all();
  }
}

}  // namespace hvd
