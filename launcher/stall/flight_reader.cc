#include "launcher/stall/flight_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "launcher/process/proc_file.h"
#include "launcher/process/recorder_folder.h"
#include "launcher/stall/flight_dump.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr Duration kLookForDump = std::chrono::milliseconds(100);
// PyTorch checks the pipe once a second.
constexpr Duration kDumpLimit = std::chrono::seconds(5);
constexpr uint64_t kMostDumpBytes = 64 * 1024 * 1024;
// Limit per answer; further ranks would add nothing.
constexpr size_t kMostEntriesSent = 50'000;

// Opens a file of this user and kind without blocking; invalid: none.
UniqueFd OpenOwn(const std::string& name, int flags, mode_t kind) {
  UniqueFd file(::open(name.c_str(), flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  const bool fits = file.valid() && ::fstat(file.get(), &status) == 0 &&
                    (status.st_mode & S_IFMT) == kind && status.st_uid == ::geteuid();
  return fits ? std::move(file) : UniqueFd();
}

bool Trigger(const std::string& pipe) {
  const UniqueFd file = OpenOwn(pipe, O_WRONLY, S_IFIFO);
  return file.valid() && ::write(file.get(), "1", 1) == 1;
}

std::string ReadOwn(const std::string& name) {
  const UniqueFd file = OpenOwn(name, O_RDONLY, S_IFREG);
  std::string bytes;
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return bytes;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > kMostDumpBytes) return bytes;
  bytes.resize(size);
  const ssize_t got = ::pread(file.get(), bytes.data(), size, 0);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

std::optional<uint32_t> RankIn(std::string_view text) {
  uint32_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return rank;
}

// The ranks of files in the stem's folder whose names are the stem, a rank and `ending`.
std::vector<uint32_t> RanksWith(const std::string& stem, std::string_view ending) {
  std::vector<uint32_t> ranks;
  const std::string begin = std::filesystem::path(stem).filename().string();
  std::error_code error;
  for (std::filesystem::directory_iterator entry(std::filesystem::path(stem).parent_path(), error),
       end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(ending)) continue;
    if (name.size() < begin.size() + ending.size()) continue;
    const std::string_view middle =
        std::string_view(name).substr(begin.size(), name.size() - begin.size() - ending.size());
    if (std::optional<uint32_t> rank = RankIn(middle)) ranks.push_back(*rank);
  }
  std::ranges::sort(ranks);
  return ranks;
}

size_t EntriesIn(const FlightRecord& record) {
  size_t entries = 0;
  for (const FlightGroup& group : record.groups) entries += 1 + group.entries.size();
  return entries;
}

}  // namespace

FlightReader::Stamp FlightReader::StampOf(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return {int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
          static_cast<uint64_t>(status.st_size), status.st_ino};
}

// A worker may have started several processes that record; each rank has a pipe of its own.
std::vector<FlightReader::Dump> FlightReader::DumpsOf(uint32_t worker, pid_t pid) const {
  const std::string environment = ReadProcFile(pid, "environ");
  const auto value = [&](const char* name) { return VariableIn(environment, name).value_or(""); };
  const std::string pipes = value("TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  std::string stem = value("TORCH_FR_DUMP_TEMP_FILE");
  if (stem.empty()) stem = value("TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
  if (pipes.empty() || stem.empty()) return {};
  std::vector<uint32_t> ranks;
  if (!folder_.empty() && pipes.starts_with(folder_ + "/")) {
    ranks = RanksWith(pipes, ".pipe");
  } else if (std::optional<uint32_t> rank = RankIn(value("RANK"))) {
    ranks = {*rank};  // the ranks of the job share the stem
  }
  std::vector<Dump> dumps;
  for (uint32_t rank : ranks) {
    Dump dump{worker, rank, Format("{}{}", stem, rank), {}, {}, false};
    dump.before = StampOf(dump.path);
    if (Trigger(Format("{}{}.pipe", pipes, rank))) dumps.push_back(std::move(dump));
  }
  return dumps;
}

void FlightReader::Answer(const AskFlight& question, const Workers& workers) {
  answer_ = {question.number, {}};
  dumps_.clear();
  for (const auto& [worker, pid] : workers) {
    for (Dump& dump : DumpsOf(worker, pid)) dumps_.push_back(std::move(dump));
  }
  deadline_ = clock_.Now() + kDumpLimit;
  LookAgain();
}

void FlightReader::LookAgain() {
  for (Dump& dump : dumps_) {
    if (!dump.done) Look(dump);
  }
  const bool all = std::ranges::all_of(dumps_, &Dump::done);
  if (all || clock_.Now() >= deadline_) return Finish();
  timer_.expires_after(kLookForDump);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error) LookAgain();
  });
}

// PyTorch writes the file in place, so that only a part of it may exist.
void FlightReader::Look(Dump& dump) {
  const Stamp stamp = StampOf(dump.path);
  if (stamp == dump.before || stamp == dump.looked_at || stamp.size == 0) return;
  dump.looked_at = stamp;
  Result<std::vector<FlightGroup>> groups = ParseFlightDump(ReadOwn(dump.path));
  if (!groups.ok()) return;
  dump.done = true;
  asked_for_[dump.path] = StampOf(dump.path);  // the last bytes may have arrived in between
  answer_.records.push_back({dump.worker, dump.rank, "", std::move(*groups)});
}

void FlightReader::Finish() {
  size_t entries = 0;
  for (FlightRecord& record : answer_.records) {
    if ((entries += EntriesIn(record)) <= kMostEntriesSent) continue;
    record.groups.clear();
    record.trouble = "has recorded too much";
  }
  for (const Dump& dump : dumps_) {
    if (dump.done) continue;
    const bool wrote = dump.looked_at != Stamp{};
    answer_.records.push_back(
        {dump.worker,
         dump.rank,
         wrote ? "has written a dump that cannot be read" : "has written no dump in time",
         {}});
  }
  dumps_.clear();
  send_(answer_);
}

void FlightReader::NoteFailure(uint32_t worker) {
  if (folder_.empty()) return;
  const std::string stem = RecorderStem(folder_, worker);
  for (uint32_t rank : RanksWith(stem, "")) {
    const std::string path = Format("{}{}", stem, rank);
    const auto asked = asked_for_.find(path);
    if (asked != asked_for_.end() && asked->second == StampOf(path)) continue;
    Result<std::vector<FlightGroup>> groups = ParseFlightDump(ReadOwn(path));
    if (groups.ok()) send_(FlightReply{0, {{worker, rank, "", std::move(*groups)}}});
  }
}

void FlightReader::Close() {
  timer_.cancel();
  for (const auto& [path, stamp] : asked_for_) {
    if (StampOf(path) == stamp) (void)::unlink(path.c_str());
  }
  asked_for_.clear();
  if (!folder_.empty()) RemoveRecorderFolder(folder_);
  folder_.clear();
}

}  // namespace hvd
