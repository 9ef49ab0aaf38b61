#include "launcher/detached/follow.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "launcher/detached/keeper.h"
#include "launcher/output/output.h"
#include "launcher/process/proc_file.h"
#include "launcher/process/process_tree.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr size_t kPiece = 1 << 16;
constexpr int kMomentMs = 30;
constexpr size_t kMostLastLine = 4096;
constexpr int64_t kNsOfSecond = 1'000'000'000;

volatile sig_atomic_t noted_signal = 0;
struct sigaction former_int, former_term;

void NoteSignal(int signal) { noted_signal = signal; }

}  // namespace

// ---- LocalOutput

OutputSource::Event LocalOutput::Next(OutputPiece* piece) {
  const bool ended = job_.end.has_value();  // before the last look at its output
  piece->text = reader_.Read(kMostPiece);
  piece->begin = reader_.place();
  piece->begin.offset -= piece->text.size();
  piece->begin.line -= static_cast<uint64_t>(std::ranges::count(piece->text, '\n'));
  piece->lost_lines = reader_.PopLostLines();
  if (piece->lost_lines > 0 || !piece->text.empty()) return Event::kPiece;
  if (ended) return Event::kEnded;
  (void)::poll(nullptr, 0, kMomentMs);
  Result<DetachedJob> now = ReadDetachedJob(job_.folder);
  if (!now.ok()) {
    job_.end = DetachedEnd{1, 0, "its folder was removed"};
    return Event::kIdle;
  }
  job_ = std::move(*now);
  (void)Tend(&job_);
  return Event::kIdle;
}

void LocalOutput::StopJob() {
  if (const auto driver = DriverOf(job_)) SignalProcess(*driver, SIGINT);
}

// ---- LogFollower

LogFollower::Step LogFollower::Next(int fd) {
  if (!note_.empty() || !text_.empty()) return Print(fd);
  OutputPiece piece;
  switch (source_.Next(&piece)) {
    case OutputSource::Event::kIdle: return Step::kIdle;
    case OutputSource::Event::kEnded: return Step::kEnded;
    case OutputSource::Event::kBroken: return Step::kSourceGone;
    case OutputSource::Event::kPiece: break;
  }
  place_ = piece.begin;
  text_ = std::move(piece.text);
  if (piece.lost_lines > 0)
    note_ = (line_ended_ ? "" : "\n") + LostLinesText(piece.lost_lines) + "\n";
  return Print(fd);
}

// Never blocks for longer than a moment: a signal that arrives just before write() would go
// unnoticed.
std::optional<size_t> LogFollower::Write(int fd, std::string_view text, bool of_output) {
  size_t taken = 0;
  while (taken < text.size()) {
    pollfd entry{fd, POLLOUT, 0};
    const int ready = ::poll(&entry, 1, taken == 0 ? kMomentMs : 0);
    if (ready <= 0) break;
    // A pipe that is ready has room for this much.
    const std::string_view piece = text.substr(taken, PIPE_BUF);
    const ssize_t written = ::write(fd, piece.data(), piece.size());
    if (written < 0) {
      if (errno == EINTR || errno == EAGAIN || taken > 0) break;  // the next call says so
      return std::nullopt;
    }
    const std::string_view printed = piece.substr(0, static_cast<size_t>(written));
    taken += printed.size();
    if (!printed.empty()) line_ended_ = printed.back() == '\n';
    if (!of_output) continue;
    place_.offset += printed.size();
    place_.line += static_cast<uint64_t>(std::ranges::count(printed, '\n'));
    source_.Shown(place_);
  }
  return taken;
}

LogFollower::Step LogFollower::Print(int fd) {
  for (std::string* text : {&note_, &text_}) {
    const std::optional<size_t> taken = Write(fd, *text, text == &text_);
    if (!taken) return Step::kReaderGone;
    text->erase(0, *taken);
    if (!text->empty()) return Step::kHeld;
  }
  return Step::kPrinted;
}

// ---- InterruptNote

InterruptNote::InterruptNote() {
  noted_signal = 0;
  struct sigaction action {};
  action.sa_handler = NoteSignal;
  ::sigaction(SIGINT, &action, &former_int);
  ::sigaction(SIGTERM, &action, &former_term);
}

InterruptNote::~InterruptNote() {
  ::sigaction(SIGINT, &former_int, nullptr);
  ::sigaction(SIGTERM, &former_term, nullptr);
}

int InterruptNote::Pop() {
  const int signal = noted_signal;
  noted_signal = 0;
  return signal;
}

// ---- RankFollower

bool RankFollower::Print() {
  const bool out = Print("stdout", STDOUT_FILENO, out_);
  return Print("stderr", STDERR_FILENO, err_) || out;
}

bool RankFollower::Print(const char* name, int to, File& file) {
  const std::string path = folder_ + "/" + name;
  if (!file.begun) {
    file.begun = true;
    file.fd.Reset(::open((path + ".1").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  }
  std::array<char, kPiece> bytes;
  for (;;) {
    const ssize_t got = file.fd.valid() ? ::read(file.fd.get(), bytes.data(), bytes.size()) : 0;
    if (got > 0) return WriteAll(to, {bytes.data(), static_cast<size_t>(got)});
    struct stat ours {};
    struct stat there {};
    if (::stat(path.c_str(), &there) != 0) return false;
    if (file.fd.valid() && ::fstat(file.fd.get(), &ours) == 0 && ours.st_ino == there.st_ino)
      return false;
    file.fd.Reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file.fd.valid()) return false;
  }
}

std::map<uint32_t, std::string> RankFolders(const DetachedJob& job) {
  constexpr std::string_view kPrefix = "rank.";
  std::map<uint32_t, std::string> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator at(job.ranks_folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    if (!name.starts_with(kPrefix)) continue;
    if (const auto rank = ParseWhole<uint32_t>(std::string_view(name).substr(kPrefix.size())))
      folders[*rank] = at->path();
  }
  return folders;
}

std::string LastLineOf(const std::string& rank_folder) {
  for (const char* name : {"/stdout", "/stderr"}) {
    const UniqueFd file(::open((rank_folder + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat facts {};
    if (!file.valid() || ::fstat(file.get(), &facts) != 0) continue;
    std::string text(kMostLastLine, '\0');
    const off_t from = std::max<off_t>(0, facts.st_size - static_cast<off_t>(kMostLastLine));
    const ssize_t got = ::pread(file.get(), text.data(), text.size(), from);
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    if (!text.empty()) return text.substr(text.find_last_of("\r\n") + 1);
  }
  return "";
}

std::optional<int64_t> ParseSince(const std::string& text, int64_t now_ns) {
  constexpr std::array<std::pair<char, int64_t>, 4> kUnits = {
      {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86'400}}};
  for (const auto& [unit, seconds] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = ParseWhole<uint32_t>(std::string_view(text).substr(0, text.size() - 1));
    if (!number) return std::nullopt;
    const int64_t age = *number * seconds;
    return age < now_ns / kNsOfSecond ? now_ns - age * kNsOfSecond : 0;
  }
  for (const char* form : {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"}) {
    std::tm parts{};
    const char* end = ::strptime(text.c_str(), form, &parts);
    if (end == nullptr || *end != '\0') continue;
    parts.tm_isdst = -1;
    return static_cast<int64_t>(std::mktime(&parts)) * kNsOfSecond;
  }
  return std::nullopt;
}

std::string LogindNote(const std::string& root) {
  const std::string cgroup = ReadSmallFile(root + "/proc/self/cgroup");
  if (cgroup.find("/session-") == cgroup.npos) return "";  // no session of logind
  std::vector<std::string> files = {root + "/usr/lib/systemd/logind.conf",
                                    root + "/etc/systemd/logind.conf"};
  for (const char* folder : {"/usr/lib/systemd/logind.conf.d", "/run/systemd/logind.conf.d",
                             "/etc/systemd/logind.conf.d"}) {
    std::vector<std::string> parts;
    std::error_code error;
    for (std::filesystem::directory_iterator at(root + folder, error), end; !error && at != end;
         at.increment(error))
      parts.push_back(at->path());
    std::ranges::sort(parts);
    files.insert(files.end(), parts.begin(), parts.end());
  }
  bool kills = false;
  for (const std::string& file : files) {
    const std::string text = "\n" + ReadSmallFile(file);
    const size_t at = text.rfind("\nKillUserProcesses=");
    if (at == text.npos) continue;
    const std::string value = text.substr(text.find('=', at) + 1, 4);
    kills = value.starts_with("yes") || value.starts_with("true") || value.starts_with("1") ||
            value.starts_with("on");
  }
  if (!kills) return "";
  return "logind ends all processes of this session at logout (KillUserProcesses=yes), this job "
         "among them; to keep it, run loginctl enable-linger once and start it with systemd-run "
         "--user --scope hvdrun --detach ...";
}

}  // namespace hvd
