#include "launcher/output_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace hvd {
namespace {

constexpr mode_t kFileMode = 0666;  // less the umask
constexpr const char* kNames[2] = {"/stdout", "/stderr"};

}  // namespace

std::string OutputFolder(const std::string& directory, uint32_t rank, uint32_t size) {
  std::string number = std::to_string(rank);
  size_t digits = std::to_string(size > 1 ? size - 1 : 0).size();
  return directory + "/rank." + std::string(digits - std::min(digits, number.size()), '0') + number;
}

Status PrepareOutputFiles(const std::string& directory, uint32_t size) {
  for (uint32_t rank = 0; rank < size; ++rank) {
    std::string folder = OutputFolder(directory, rank, size);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      return InvalidArgument("--output-filename " + directory + ": the folder " + folder +
                             " cannot be made: " + error.message());
    for (const char* name : kNames) {
      UniqueFd file(
          ::open((folder + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode));
      if (!file.valid())
        return InvalidArgument("--output-filename " + directory + ": " + folder + name +
                               " cannot be written: " + std::strerror(errno));
    }
  }
  return Status::Ok();
}

OutputFiles::OutputFiles(std::string directory, uint32_t size,
                         std::function<void(std::vector<OutputReceipt>)> on_written)
    : directory_(std::move(directory)),
      size_(size),
      on_written_(std::move(on_written)),
      given_up_(2 * static_cast<size_t>(size)),
      thread_([this] { Run(); }) {}

OutputFiles::~OutputFiles() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void OutputFiles::Write(uint32_t rank, OutputStream stream, std::string bytes,
                        OutputReceipt receipt) {
  {
    std::lock_guard lock(mutex_);
    queued_.push_back({2 * size_t{rank} + static_cast<size_t>(stream), std::move(bytes), receipt});
  }
  changed_.notify_all();
}

void OutputFiles::Flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queued_.empty() && !writing_; });
}

std::optional<std::string> OutputFiles::TakeFailure() {
  std::lock_guard lock(mutex_);
  return std::exchange(failure_, std::nullopt);
}

void OutputFiles::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !queued_.empty(); });
    if (queued_.empty()) return;
    std::vector<Piece> pieces = std::exchange(queued_, {});
    writing_ = true;
    lock.unlock();
    std::vector<OutputReceipt> receipts;
    for (const Piece& piece : pieces) {
      if (piece.file < given_up_.size() && !given_up_[piece.file]) WritePiece(piece);
      receipts.push_back(piece.receipt);
    }
    on_written_(std::move(receipts));
    lock.lock();
    writing_ = false;
    changed_.notify_all();
  }
}

void OutputFiles::WritePiece(const Piece& piece) {
  auto rank = static_cast<uint32_t>(piece.file / 2);
  std::string path = OutputFolder(directory_, rank, size_) + kNames[piece.file % 2];
  UniqueFd& file = open_[piece.file];
  if (!file.valid()) {
    // Appending: a file that someone emptied meanwhile (logrotate) gets no hole.
    file.Reset(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kFileMode));
  }
  if (!file.valid() || !WriteAll(file.get(), piece.bytes)) {
    std::string why = std::strerror(errno);
    given_up_[piece.file] = true;
    open_.erase(piece.file);
    if (std::exchange(reported_, true)) return;
    std::lock_guard lock(mutex_);
    failure_ = "the output of rank " + std::to_string(rank) + " can no longer be written to " +
               path + ": " + why + "; the job goes on, its output is on the screen only " +
               "(files of other ranks may follow)";
    return;
  }
  if (open_.size() > kMaxOpen)
    open_.erase(open_.begin()->first == piece.file ? std::prev(open_.end()) : open_.begin());
}

}  // namespace hvd
