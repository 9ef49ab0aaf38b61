#include "launcher/detached/log_store.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr std::string_view kSegmentName = "output.", kTimesName = "times.";
constexpr uint64_t kSegments = 16;  // into which the limit is divided
constexpr int64_t kTimeEveryNs = 100'000'000;
constexpr int64_t kSecondNs = 1'000'000'000;

// An entry of a times file: the time at which the line at this place arrived.
struct TimeEntry {
  int64_t wall_ns = 0;
  LogPlace place;
};

std::string NameOf(std::string_view prefix, LogPlace begin) {
  return Format("{}{:020}.{:020}", prefix, begin.offset, begin.line);
}

std::string TimesOf(const LogSegment& segment) {
  return std::filesystem::path(segment.path).parent_path() / NameOf(kTimesName, segment.begin);
}

std::optional<LogPlace> PlaceIn(std::string_view name) {
  if (!name.starts_with(kSegmentName)) return std::nullopt;
  name.remove_prefix(kSegmentName.size());
  const size_t dot = name.find('.');
  if (dot == name.npos) return std::nullopt;
  const auto offset = ParseWhole<uint64_t>(name.substr(0, dot));
  const auto line = ParseWhole<uint64_t>(name.substr(dot + 1));
  if (!offset || !line) return std::nullopt;
  return LogPlace{*offset, *line};
}

uint64_t LineEnds(std::string_view bytes) {
  return static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
}

uint64_t SizeOf(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? static_cast<uint64_t>(facts.st_size) : 0;
}

UniqueFd OpenToAppend(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                         S_IRUSR | S_IWUSR));
}

// Returns the number of bytes written.
size_t WriteSome(int fd, std::string_view bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t got = ::write(fd, bytes.data() + written, bytes.size() - written);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    written += static_cast<size_t>(got);
  }
  return written;
}

// At most 1/16 of the limit, and such that a file with a long last line stays within `ulimit -f`.
uint64_t SegmentBytes(uint64_t limit_bytes) {
  uint64_t bytes = limit_bytes / kSegments;
  rlimit file{};
  if (::getrlimit(RLIMIT_FSIZE, &file) == 0 && file.rlim_cur != RLIM_INFINITY)
    bytes = std::min<uint64_t>(bytes, file.rlim_cur / 4);
  return std::max<uint64_t>(bytes, 1);
}

// The entries of the segment's times file.
std::vector<TimeEntry> TimesIn(const LogSegment& segment) {
  std::vector<TimeEntry> entries;
  const UniqueFd file(::open(TimesOf(segment).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return entries;
  TimeEntry entry;
  while (::read(file.get(), &entry, sizeof entry) == static_cast<ssize_t>(sizeof entry))
    entries.push_back(entry);
  return entries;
}

}  // namespace

std::vector<LogSegment> SegmentsIn(const std::string& folder) {
  std::vector<LogSegment> segments;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (const auto begin = PlaceIn(at->path().filename().string()))
      segments.push_back({*begin, at->path().string()});
  }
  std::ranges::sort(segments, {}, [](const LogSegment& segment) { return segment.begin.offset; });
  return segments;
}

// ---- LogWriter

LogWriter::LogWriter(std::string folder, uint64_t limit_bytes)
    : folder_(std::move(folder)),
      limit_bytes_(limit_bytes),
      segment_bytes_(SegmentBytes(limit_bytes)) {}

Result<std::unique_ptr<LogWriter>> LogWriter::Open(const std::string& folder,
                                                   uint64_t limit_bytes) {
  std::unique_ptr<LogWriter> writer(new LogWriter(folder, limit_bytes));
  const std::vector<LogSegment> segments = SegmentsIn(folder);
  if (!segments.empty()) {
    // Reads the last segment to count the lines that the former writer has put into it.
    LogReader reader(folder, segments.back().begin);
    for (;;) {
      const std::string bytes = reader.Read(1 << 20);
      if (bytes.empty()) break;
      writer->line_ended_ = bytes.back() == '\n';
    }
    writer->end_ = reader.place();
    // Continues it: on a full disk no file can be created. What cannot be written is counted.
    (void)writer->OpenSegment(segments.back().begin);
    return writer;
  }
  if (!writer->Begin()) return SystemError("cannot write to " + folder, errno);
  return writer;
}

bool LogWriter::Begin() { return OpenSegment(end_); }

bool LogWriter::OpenSegment(LogPlace begin) {
  begin_ = begin;
  segment_ = OpenToAppend(folder_ + "/" + NameOf(kSegmentName, begin_));
  times_ = OpenToAppend(folder_ + "/" + NameOf(kTimesName, begin_));
  last_time_ns_ = 0;
  return segment_.valid();
}

void LogWriter::Append(std::string_view bytes, int64_t wall_ns) {
  while (!bytes.empty()) {
    const uint64_t size = end_.offset - begin_.offset;
    const uint64_t room = size < segment_bytes_ ? segment_bytes_ - size : 0;
    if (room == 0 && (line_ended_ || size >= 2 * segment_bytes_)) {
      RemoveOldest(segment_bytes_);
      (void)Begin();
      continue;
    }
    NoteTime(wall_ns);
    // Up to the end of the line that fills the segment.
    size_t length = bytes.size();
    if (length > room) {
      const size_t line_end = bytes.find('\n', room == 0 ? 0 : static_cast<size_t>(room) - 1);
      if (line_end != bytes.npos) length = line_end + 1;
      length = std::min<size_t>(length, 2 * segment_bytes_ - size);
    }
    Write(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
}

void LogWriter::Write(std::string_view bytes) {
  size_t written = segment_.valid() ? WriteSome(segment_.get(), bytes) : 0;
  if (written < bytes.size() && SegmentsIn(folder_).size() > 1) {
    RemoveOldest(limit_bytes_, /*from_readers=*/true);  // the disk is full: old output goes first
    if (segment_.valid()) written += WriteSome(segment_.get(), bytes.substr(written));
  }
  const auto pass = [this](std::string_view part) {
    end_.offset += part.size();
    end_.line += LineEnds(part);
    if (!part.empty()) line_ended_ = part.back() == '\n';
  };
  pass(bytes.substr(0, written));
  if (written == bytes.size()) return;
  pass(bytes.substr(written));  // is missing
  (void)Begin();
}

void LogWriter::NoteTime(int64_t wall_ns) {
  if (!line_ended_ || !times_.valid() || std::abs(wall_ns - last_time_ns_) < kTimeEveryNs) return;
  last_time_ns_ = wall_ns;
  const TimeEntry entry{wall_ns, end_};
  const size_t written =
      WriteSome(times_.get(), {reinterpret_cast<const char*>(&entry), sizeof entry});
  if (written == sizeof entry) return;
  // The disk is full: a partial entry would shift those after it.
  const off_t size = ::lseek(times_.get(), 0, SEEK_END);
  (void)!::ftruncate(times_.get(), size - static_cast<off_t>(written));
}

// Removes segments until `room` more bytes fit the limit. The current segment stays. A reader that
// has a segment open keeps its bytes, and their disk space, unless they are taken `from_readers`.
void LogWriter::RemoveOldest(uint64_t room, bool from_readers) {
  const std::vector<LogSegment> segments = SegmentsIn(folder_);
  uint64_t total = room;
  for (const LogSegment& segment : segments) total += SizeOf(segment.path);
  for (size_t at = 0; at + 1 < segments.size() && total > limit_bytes_; ++at) {
    total -= SizeOf(segments[at].path);
    if (from_readers) (void)!::truncate(segments[at].path.c_str(), 0);
    ::unlink(segments[at].path.c_str());
    ::unlink(TimesOf(segments[at]).c_str());
  }
}

// ---- LogReader

std::string LogReader::ReadSegment(size_t most) {
  std::string bytes;
  if (!segment_.valid()) return bytes;
  bytes.resize(most);
  const ssize_t got = ::pread(segment_.get(), bytes.data(), most,
                              static_cast<off_t>(place_.offset - begin_.offset));
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  place_.offset += bytes.size();
  place_.line += LineEnds(bytes);
  return bytes;
}

std::string LogReader::Read(size_t most) {
  for (;;) {
    if (std::string bytes = ReadSegment(most); !bytes.empty()) return bytes;
    if (!OpenNext()) return "";
  }
}

// Opens the segment with the next existing byte. False: it is open already, or there is none.
bool LogReader::OpenNext() {
  const std::vector<LogSegment> segments = SegmentsIn(folder_);
  // The last segment that begins here or before and is not empty; else the next one.
  for (size_t at = segments.size(); at-- > 0;) {
    const LogSegment& segment = segments[at];
    if (segment.begin.offset > place_.offset) continue;
    const bool open = segment_.valid() && begin_ == segment.begin;
    const bool more = segment.begin.offset + SizeOf(segment.path) > place_.offset;
    if (!more && at + 1 < segments.size()) break;
    if (open) return more;
    UniqueFd file(::open(segment.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file.valid()) break;
    segment_ = std::move(file);
    begin_ = segment.begin;
    return more;
  }
  for (const LogSegment& segment : segments) {
    if (segment.begin.offset <= place_.offset) continue;
    // The open segment may have grown before the next one was begun; from now on it cannot.
    if (segment_.valid()) {
      char byte = 0;
      if (::pread(segment_.get(), &byte, 1, static_cast<off_t>(place_.offset - begin_.offset)) == 1)
        return true;
    }
    UniqueFd file(::open(segment.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file.valid()) continue;  // removed meanwhile
    lost_lines_ +=
        std::max<uint64_t>(segment.begin.line - std::min(segment.begin.line, place_.line), 1);
    segment_ = std::move(file);
    begin_ = place_ = segment.begin;
    return true;
  }
  return false;
}

uint64_t EndOfLog(const std::string& folder) {
  const std::vector<LogSegment> segments = SegmentsIn(folder);
  return segments.empty() ? 0 : segments.back().begin.offset + SizeOf(segments.back().path);
}

LogPlace PlaceSince(const std::string& folder, int64_t wall_ns) {
  const std::vector<LogSegment> segments = SegmentsIn(folder);
  std::optional<LogPlace> place;
  for (const LogSegment& segment : segments) {
    for (const TimeEntry& entry : TimesIn(segment)) {
      if (entry.wall_ns >= wall_ns) {
        if (!place) place = entry.place;
        continue;
      }
      // Lines that arrive within a tenth of a second share an entry.
      place = wall_ns - entry.wall_ns < kSecondNs ? std::optional(entry.place) : std::nullopt;
    }
  }
  if (place || segments.empty()) return place.value_or(LogPlace{});
  LogReader reader(folder, segments.back().begin);
  while (!reader.Read(1 << 20).empty()) {
  }
  return reader.place();
}

std::string LostLinesText(uint64_t lines) {
  return Format("hvdrun: {} {} of older output {} not kept (--detached-output-limit)", lines,
                lines == 1 ? "line" : "lines", lines == 1 ? "was" : "were");
}

}  // namespace hvd
