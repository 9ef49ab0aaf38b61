#include "launcher/output/output_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/base/output_file.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr mode_t kFileMode = 0666;  // less the umask
constexpr const char* kNames[2] = {"stdout", "stderr"};
constexpr const char* kOlder = ".1";

OutputStream StreamOf(size_t file) {
  return file % 2 == 0 ? OutputStream::kStdout : OutputStream::kStderr;
}

Status CannotWrite(const std::string& path, int error) {
  if (error == ELOOP || error == ENOTDIR)
    return InvalidArgument(path +
                           " is a link or stands in the way, and links are not followed; "
                           "remove it or name another folder");
  if (error == ENXIO)
    return InvalidArgument(path + " is not an ordinary file; remove it or name another folder");
  return InvalidArgument(path + " cannot be written: " + std::strerror(error));
}

// Rank folders and files have predictable names and may be in folders where others can write:
// neither follow a link nor wait for a pipe.
Result<UniqueFd> OpenOutputFile(const std::string& folder, const char* name, bool empty) {
  UniqueFd place(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!place.valid()) return CannotWrite(folder, errno);
  UniqueFd file = OpenRegularFile(place.get(), name, O_APPEND | (empty ? O_TRUNC : 0), kFileMode);
  if (!file.valid()) return CannotWrite(folder + "/" + name, errno);
  return file;
}

}  // namespace

std::string OutputFolder(const std::string& directory, uint32_t rank, uint32_t size) {
  std::string number = std::to_string(rank);
  size_t digits = std::to_string(size > 1 ? size - 1 : 0).size();
  return directory + "/rank." + std::string(digits - std::min(digits, number.size()), '0') + number;
}

Status PrepareOutputFiles(const std::string& directory, uint32_t size, int64_t limit_bytes) {
  for (uint32_t rank = 0; rank < size; ++rank) {
    std::string folder = OutputFolder(directory, rank, size);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      return InvalidArgument("--output-filename " + directory + ": the folder " + folder +
                             " cannot be made: " + error.message());
    for (const char* name : kNames) {
      if (limit_bytes > 0)  // of a former job
        ::unlink((folder + "/" + name + kOlder).c_str());
      Result<UniqueFd> file = OpenOutputFile(folder, name, /*empty=*/true);
      if (!file.ok())
        return InvalidArgument("--output-filename " + directory + ": " + file.status().message());
    }
  }
  return Status::Ok();
}

OutputFiles::OutputFiles(std::string directory, uint32_t size, int64_t limit_bytes,
                         std::function<void(std::vector<OutputReceipt>)> on_written,
                         std::shared_ptr<PrintedOutput> printed)
    : directory_(std::move(directory)),
      size_(size),
      limit_bytes_(limit_bytes),
      on_written_(std::move(on_written)),
      progress_(2 * static_cast<size_t>(size)),
      printed_(std::move(printed)) {
  if (printed_) GoOn();
  thread_ = std::thread([this] { Run(); });
}

// Continues the files left by a former hvdrun.
void OutputFiles::GoOn() {
  for (size_t file = 0; file < progress_.size(); ++file) {
    struct stat facts {};
    const bool exists = ::lstat(PathOf(file).c_str(), &facts) == 0;
    Progress& progress = progress_[file];
    progress.base = static_cast<int64_t>(
        printed_->FileBase(static_cast<uint32_t>(file / 2), StreamOf(file), exists));
    progress.bytes = exists ? facts.st_size : 0;
    // The last bytes may not have been counted.
    const PrintedOutput::FileWriter writer =
        printed_->file_writer(static_cast<uint32_t>(file / 2), StreamOf(file));
    const auto all = static_cast<uint64_t>(progress.base + progress.bytes);
    const uint64_t bytes = writer.offset + (all > writer.at ? all - writer.at : 0);
    if (bytes > printed_->in_file(writer.worker, StreamOf(file)))
      printed_->SetInFile(writer.worker, StreamOf(file), bytes);
  }
}

OutputFiles::~OutputFiles() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void OutputFiles::Write(uint32_t rank, uint32_t worker, OutputStream stream, std::string bytes,
                        OutputReceipt receipt) {
  {
    MutexLock lock(mutex_);
    queued_.push_back(
        {2 * size_t{rank} + static_cast<size_t>(stream), worker, std::move(bytes), receipt});
  }
  changed_.notify_all();
}

void OutputFiles::Flush() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() HVD_REQUIRES(mutex_) { return queued_.empty() && !writing_; });
}

std::optional<std::string> OutputFiles::PopFailure() {
  MutexLock lock(mutex_);
  return std::exchange(failure_, std::nullopt);
}

void OutputFiles::Run() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this]() HVD_REQUIRES(mutex_) { return stop_ || !queued_.empty(); });
    if (queued_.empty()) return;
    std::vector<Piece> pieces = std::exchange(queued_, {});
    writing_ = true;
    lock.unlock();
    std::vector<OutputReceipt> receipts;
    for (const Piece& piece : pieces) {
      if (piece.file < progress_.size() && !progress_[piece.file].given_up) WritePiece(piece);
      NoteWritten(piece);
      receipts.push_back(piece.receipt);
    }
    on_written_(std::move(receipts));
    lock.lock();
    writing_ = false;
    changed_.notify_all();
  }
}

std::string OutputFiles::FolderOf(size_t file) const {
  return OutputFolder(directory_, static_cast<uint32_t>(file / 2), size_);
}

std::string OutputFiles::PathOf(size_t file) const {
  return FolderOf(file) + "/" + kNames[file % 2];
}

void OutputFiles::WritePiece(const Piece& piece) {
  if (!Rotate(piece)) return GiveUp(piece, CannotWrite(PathOf(piece.file), errno));
  UniqueFd& file = open_[piece.file];
  if (!file.valid()) {
    // Opened for appending: a file that was truncated meanwhile (logrotate) gets no hole.
    Result<UniqueFd> opened =
        OpenOutputFile(FolderOf(piece.file), kNames[piece.file % 2], /*empty=*/false);
    if (!opened.ok()) return GiveUp(piece, opened.status());
    file = std::move(*opened);
  }
  CountFor(piece);
  if (!WriteAll(file.get(), piece.bytes))
    return GiveUp(piece, CannotWrite(PathOf(piece.file), errno));
  Progress& progress = progress_[piece.file];
  progress.bytes += static_cast<int64_t>(piece.bytes.size());
  if (!piece.bytes.empty()) progress.line_ended = piece.bytes.back() == '\n';
  if (open_.size() > kMaxOpen)
    open_.erase(open_.begin()->first == piece.file ? std::prev(open_.end()) : open_.begin());
}

// Called before a worker's bytes are written: records where they begin, unless the worker wrote
// there last and nowhere else since. Those of other workers have been counted.
void OutputFiles::CountFor(const Piece& piece) {
  if (!printed_ || piece.worker >= printed_->workers()) return;
  const auto rank = static_cast<uint32_t>(piece.file / 2);
  const OutputStream stream = StreamOf(piece.file);
  const PrintedOutput::FileWriter last = printed_->file_writer(rank, stream);
  const auto all = static_cast<uint64_t>(progress_[piece.file].base + progress_[piece.file].bytes);
  const uint64_t of_worker = printed_->in_file(piece.worker, stream);
  if (last.worker == piece.worker && last.offset + (all - last.at) == of_worker) return;
  printed_->SetFileWriter(rank, stream, {piece.worker, all, of_worker});
}

void OutputFiles::NoteWritten(const Piece& piece) {
  if (!printed_ || piece.worker >= printed_->workers()) return;
  const OutputStream stream = StreamOf(piece.file);
  const bool lost = piece.file >= progress_.size() || progress_[piece.file].given_up;
  constexpr uint64_t kAll = UINT64_MAX / 2;  // the job does not wait for this
  const uint64_t before = printed_->in_file(piece.worker, stream);
  printed_->SetInFile(piece.worker, stream, lost ? kAll : before + piece.bytes.size());
}

// Begins a new file if this piece would make the old one too long. False: that failed.
bool OutputFiles::Rotate(const Piece& piece) {
  Progress& progress = progress_[piece.file];
  if (limit_bytes_ == 0 || progress.bytes == 0 || !progress.line_ended) return true;
  if (progress.bytes + static_cast<int64_t>(piece.bytes.size()) <= limit_bytes_) return true;
  open_.erase(piece.file);
  const auto rank = static_cast<uint32_t>(piece.file / 2);
  if (printed_)
    printed_->BeginRotation(rank, StreamOf(piece.file), static_cast<uint64_t>(progress.bytes));
  progress.base += std::exchange(progress.bytes, 0);
  std::string path = PathOf(piece.file);
  // It may have been removed.
  const bool renamed = ::rename(path.c_str(), (path + kOlder).c_str()) == 0 || errno == ENOENT;
  if (printed_) printed_->EndRotation(rank, StreamOf(piece.file));
  return renamed;
}

void OutputFiles::GiveUp(const Piece& piece, const Status& why) {
  progress_[piece.file].given_up = true;
  open_.erase(piece.file);
  if (std::exchange(reported_, true)) return;
  MutexLock lock(mutex_);
  failure_ = Format(
      "the output of rank {} can no longer be written to its file: {}; the job goes on, its output "
      "is on the screen only (files of other ranks may follow)",
      piece.file / 2, why.message());
}

}  // namespace hvd
