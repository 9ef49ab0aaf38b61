#include "launcher/output/printed_output.h"

#include <limits.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>
#include <utility>

namespace hvd {
namespace {

constexpr size_t kNumbers = sizeof(uint64_t) + sizeof(uint32_t);
// A packet ends after this many spans, unless one text is that of more ranks.
constexpr size_t kMostSpans = 1024;

// Writes a packet at once or not at all: waits for room.
bool WriteAtOnce(int fd, std::string_view packet) {
  for (;;) {
    const ssize_t written = ::write(fd, packet.data(), packet.size());
    if (written == static_cast<ssize_t>(packet.size())) return true;
    if (written >= 0 || (errno != EINTR && errno != EAGAIN)) return false;
    pollfd wait{fd, POLLOUT, 0};
    if (errno == EAGAIN) ::poll(&wait, 1, -1);
  }
}

}  // namespace

struct PrintedOutput::Shared {
  struct Update {
    uint64_t index = 0, printed = 0;
  };

  std::atomic<uint64_t> intended = 0, written = 0;  // numbers of packets
  uint32_t packet_bytes = 0, updates = 0;
  OpenLine open_after, open_line;
  char packet[PIPE_BUF];

  // After this: printed and in_file, each 2 * workers; file_base and rotated_base, each 2 * ranks;
  // the writers of 2 * ranks files; then the updates.
};

namespace {

template <typename Shared>
uint64_t* NumbersBehind(Shared* shared) {
  return reinterpret_cast<uint64_t*>(shared + 1);  // NOLINT: it is aligned as the numbers are
}

// Per file: which of the two is valid (1 or 2; 0: neither), so that a change is one store.
constexpr size_t kNumbersOfWriter = 3, kNumbersOfFile = 1 + 2 * kNumbersOfWriter;

constexpr size_t CountNumbers(uint32_t ranks, uint32_t workers) {
  return 4 * size_t{workers} + (4 + 2 * kNumbersOfFile) * size_t{ranks};
}

template <typename Shared>
auto* UpdatesBehind(Shared* shared, uint32_t ranks, uint32_t workers) {
  return reinterpret_cast<typename Shared::Update*>(  // NOLINT: as above
      NumbersBehind(shared) + CountNumbers(ranks, workers));
}

}  // namespace

std::string MakeOutputMark() {
  constexpr size_t kLetters = 24;
  std::random_device random;
  std::string mark = "\x1e";
  while (mark.size() <= kLetters) mark += static_cast<char>('a' + random() % 26);
  return mark;
}

std::string PacketOf(std::string_view mark, uint64_t number, std::string_view text) {
  std::string packet(mark);
  const auto length = static_cast<uint32_t>(text.size());
  packet.append(reinterpret_cast<const char*>(&number), sizeof number);  // NOLINT
  packet.append(reinterpret_cast<const char*>(&length), sizeof length);  // NOLINT
  return packet.append(text);
}

size_t MostPacketText(std::string_view mark) { return PIPE_BUF - kNumbers - mark.size(); }

Result<std::shared_ptr<PrintedOutput>> PrintedOutput::Make(uint32_t ranks, std::string mark,
                                                           uint32_t workers) {
  using Update = Shared::Update;
  workers = std::max(workers, ranks);
  const size_t bytes = sizeof(Shared) + CountNumbers(ranks, workers) * sizeof(uint64_t) +
                       (kMostSpans + 4 * size_t{ranks}) * sizeof(Update);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return SystemError("cannot share memory with the standby", errno);
  auto* shared = new (memory) Shared;
  return std::shared_ptr<PrintedOutput>(
      new PrintedOutput(ranks, workers, std::move(mark), shared, bytes));
}

PrintedOutput::PrintedOutput(uint32_t ranks, uint32_t workers, std::string mark, Shared* shared,
                             size_t bytes)
    : ranks_(ranks), workers_(workers), mark_(std::move(mark)), shared_(shared), bytes_(bytes) {}

PrintedOutput::~PrintedOutput() { ::munmap(shared_, bytes_); }

uint64_t* PrintedOutput::Printed() const { return NumbersBehind(shared_); }

uint64_t PrintedOutput::printed(uint32_t worker, OutputStream stream) const {
  return std::atomic_ref(Printed()[IndexOf(worker, stream)]).load();
}

PrintedOutput::OpenLine PrintedOutput::open_line() const { return shared_->open_line; }

// ---- writing

bool PrintedOutput::Write(int fd, std::string_view text, const std::vector<PrintedSpan>& spans) {
  auto* updates = UpdatesBehind(shared_, ranks_, workers_);
  const size_t room = MostPacketText(mark_);
  if (shared_->intended.load() != shared_->written.load() && !WritePacket(fd)) return false;
  size_t first = 0;  // of the spans that have not ended
  for (size_t at = 0; at < text.size();) {
    size_t cut = std::min(text.size(), at + room);
    // Does not split hvdrun's own text: a prefix is not printed twice.
    size_t next = first, count = 0;
    for (; next < spans.size() && spans[next].begin < cut; ++next) {
      const bool same = next > first && spans[next].begin == spans[next - 1].begin;
      if (count++ >= kMostSpans && !same) break;
    }
    if (next < spans.size() || cut < text.size()) {
      const size_t last_end = next > first ? spans[next - 1].end : at;
      if (count > kMostSpans && next < spans.size() && spans[next].begin < cut) {
        cut = std::min(cut, last_end);
      } else if (cut < text.size() && last_end < cut && last_end > at) {
        cut = last_end;
      }
    }
    uint32_t updated = 0;
    for (size_t i = first; i < next; ++i) {
      const PrintedSpan& span = spans[i];
      const size_t begin = std::max(span.begin, at), end = std::min(span.end, cut);
      const uint32_t worker = span.worker.value_or(span.rank);
      const size_t index = IndexOf(worker, span.stream);
      const bool is_drop = span.begin == span.end && span.begin >= at;
      if (worker >= workers_ || (begin >= end && !is_drop)) continue;
      uint64_t before = Printed()[index];
      // A rank with several spans in the packet; few have, and these are near.
      for (uint32_t u = updated; u-- > 0;) {
        if (updates[u].index != index) continue;
        before = updates[u].printed;
        break;
      }
      const uint64_t dropped = end == span.end ? span.dropped : 0;
      updates[updated++] = {index, before + (end - begin) + dropped};
      shared_->open_after = {span.rank, worker, span.stream, false, false};
    }
    shared_->open_after.is_open = text[cut - 1] != '\n';
    shared_->open_after.returned = text[cut - 1] == '\r';
    const std::string packet =
        PacketOf(mark_, shared_->written.load() + 1, text.substr(at, cut - at));
    std::memcpy(shared_->packet, packet.data(), packet.size());
    shared_->packet_bytes = static_cast<uint32_t>(packet.size());
    shared_->updates = updated;
    shared_->intended.store(shared_->written.load() + 1);
    if (!WritePacket(fd)) return false;
    while (first < next && spans[first].end <= cut) ++first;
    at = cut;
  }
  return true;
}

bool PrintedOutput::WritePacket(int fd) {
  if (!WriteAtOnce(fd, {shared_->packet, shared_->packet_bytes})) return false;
  ApplyCounts();
  shared_->written.store(shared_->intended.load());
  return true;
}

// Applying them twice is harmless.
void PrintedOutput::ApplyCounts() {
  const auto* updates = UpdatesBehind(shared_, ranks_, workers_);
  for (uint32_t u = 0; u < shared_->updates; ++u)
    std::atomic_ref(Printed()[updates[u].index]).store(updates[u].printed);
  shared_->open_line = shared_->open_after;
}

void PrintedOutput::Recover() {
  if (shared_->intended.load() != shared_->written.load()) ApplyCounts();
}

// ---- files

// The file was renamed and the next one does not exist yet, or hvdrun was killed before creating
// it.
uint64_t PrintedOutput::FileBase(uint32_t rank, OutputStream stream, bool file_exists) {
  const size_t index = IndexOf(rank, stream);
  uint64_t& base = FileBases()[index];
  uint64_t& rotated = RotatedBases()[index];
  if (rotated != 0 && !file_exists) base = rotated;
  rotated = 0;
  return base;
}

void PrintedOutput::BeginRotation(uint32_t rank, OutputStream stream, uint64_t bytes_of_file) {
  const size_t index = IndexOf(rank, stream);
  std::atomic_ref(RotatedBases()[index]).store(FileBases()[index] + bytes_of_file);
}

void PrintedOutput::EndRotation(uint32_t rank, OutputStream stream) {
  const size_t index = IndexOf(rank, stream);
  uint64_t& rotated = RotatedBases()[index];
  std::atomic_ref(FileBases()[index]).store(rotated);
  std::atomic_ref(rotated).store(0);
}

PrintedOutput::FileWriter PrintedOutput::file_writer(uint32_t rank, OutputStream stream) const {
  const uint64_t* const file = FileWriters() + kNumbersOfFile * IndexOf(rank, stream);
  if (file[0] == 0) return {rank, 0, 0};
  const uint64_t* const writer = file + 1 + kNumbersOfWriter * (file[0] - 1);
  return {static_cast<uint32_t>(writer[0]), writer[1], writer[2]};
}

void PrintedOutput::SetFileWriter(uint32_t rank, OutputStream stream, const FileWriter& writer) {
  uint64_t* const file = FileWriters() + kNumbersOfFile * IndexOf(rank, stream);
  const uint64_t next = file[0] == 1 ? 2 : 1;
  uint64_t* const numbers = file + 1 + kNumbersOfWriter * (next - 1);
  numbers[0] = writer.worker;
  numbers[1] = writer.at;
  numbers[2] = writer.offset;
  std::atomic_ref(file[0]).store(next);
}

uint64_t PrintedOutput::in_file(uint32_t worker, OutputStream stream) const {
  return std::atomic_ref(InFile()[IndexOf(worker, stream)]).load();
}

void PrintedOutput::SetInFile(uint32_t worker, OutputStream stream, uint64_t bytes) {
  std::atomic_ref(InFile()[IndexOf(worker, stream)]).store(bytes);
}

// ---- reading

std::string_view PacketReader::Unwrap(std::string_view bytes) {
  if (mark_.empty()) return bytes;
  held_ += bytes;
  text_.clear();
  size_t at = 0;
  const std::string_view held = held_;
  while (at < held.size()) {
    const size_t mark = held.find(mark_, at);
    if (mark == std::string_view::npos) {
      // The end of these bytes may be the beginning of a mark.
      size_t keep = std::min(mark_.size() - 1, held.size() - at);
      while (keep > 0 && !std::string_view(mark_).starts_with(held.substr(held.size() - keep)))
        --keep;
      text_ += held.substr(at, held.size() - keep - at);
      at = held.size() - keep;
      break;
    }
    text_ += held.substr(at, mark - at);
    at = mark;
    const size_t numbers = mark + mark_.size(), text = numbers + kNumbers;
    if (held.size() < text) break;
    uint64_t number = 0;
    uint32_t length = 0;
    std::memcpy(&number, held.data() + numbers, sizeof number);
    std::memcpy(&length, held.data() + numbers + sizeof number, sizeof length);
    if (held.size() - text < length) break;
    if (number > last_) text_ += held.substr(text, length);
    last_ = std::max(last_, number);
    at = text + length;
  }
  held_.erase(0, at);
  return text_;
}

}  // namespace hvd
