// PrintedOutput: how far the output of each rank has been printed, in memory that the standby of
// hvdrun shares (launcher/detached/standby.h): when hvdrun is killed at any instant, the one that
// takes over knows which bytes the agents must send again, and none is printed twice or lost.
//
// Text goes through the pipe in packets, each written at once (PIPE_BUF) and numbered. A packet and
// the counts behind it are in the memory before it is written. If hvdrun is killed between that and
// noting that it was written, the successor counts the packet as printed (Recover) and its first
// Write writes it again; the reader of the pipe drops a number that it has had (PacketReader).
//
//   packet: mark (a secret of the job, so that no output looks like it), number, length, text
//
// Writing is for one thread at a time, the rest for any.
#ifndef HVD_LAUNCHER_OUTPUT_PRINTED_OUTPUT_H_
#define HVD_LAUNCHER_OUTPUT_PRINTED_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/wire/messages.h"
#include "runtime/base/status.h"

namespace hvd {

// Bytes begin..end of a text are those of a rank as it printed them; the rest of the text is
// hvdrun's: prefixes, its own lines. `dropped` so many more of the rank were left out behind them.
struct PrintedSpan {
  size_t begin = 0, end = 0;
  uint32_t rank = 0;
  OutputStream stream = OutputStream::kStdout;
  uint64_t dropped = 0;
  // Of an elastic job: the worker that is that rank, by whose number bytes are counted; none: it
  // has the number of the rank.
  std::optional<uint32_t> worker = {};
};

class PrintedOutput {
 public:
  // `ranks`: as many as there may be at a time. `workers`: numbers of workers that are counted, the
  // rest is not; 0: those of the ranks.
  static Result<std::shared_ptr<PrintedOutput>> Make(uint32_t ranks, std::string mark,
                                                     uint32_t workers = 0);
  ~PrintedOutput();
  PrintedOutput(const PrintedOutput&) = delete;

  // Writes a text with its spans, which are in order. False: it cannot be written (errno).
  bool Write(int fd, std::string_view text, const std::vector<PrintedSpan>& spans);
  // In the successor, before a count is read: the packet that its predecessor may have been writing
  // counts as printed. The next Write writes it first. Elsewhere it changes nothing.
  void Recover();

  // Bytes of the worker's stream that have been printed since it started.
  uint64_t printed(uint32_t worker, OutputStream stream) const;
  // The writer of the last line if that has no end.
  struct OpenLine {
    uint32_t rank = 0, worker = 0;
    OutputStream stream = OutputStream::kStdout;
    bool is_open = false, returned = false;
  };
  OpenLine open_line() const;

  // The same for the files of the ranks: of a file that is replaced by an empty one when it is
  // full, so many bytes went to the former ones.
  uint64_t FileBase(uint32_t rank, OutputStream stream, bool file_exists);
  void BeginRotation(uint32_t rank, OutputStream stream, uint64_t bytes_of_file);
  void EndRotation(uint32_t rank, OutputStream stream);
  // The worker that wrote to the files of a rank last: its first byte there, and that byte's place
  // in its stream.
  struct FileWriter {
    uint32_t worker = 0;
    uint64_t at = 0, offset = 0;
  };
  FileWriter file_writer(uint32_t rank, OutputStream stream) const;
  void SetFileWriter(uint32_t rank, OutputStream stream, const FileWriter& writer);
  // Bytes of the worker's stream that are in files.
  uint64_t in_file(uint32_t worker, OutputStream stream) const;
  void SetInFile(uint32_t worker, OutputStream stream, uint64_t bytes);

  uint32_t ranks() const { return ranks_; }
  uint32_t workers() const { return workers_; }

 private:
  struct Shared;
  struct Cut;

  PrintedOutput(uint32_t ranks, uint32_t workers, std::string mark, Shared* shared, size_t bytes);
  bool WritePacket(int fd);
  void ApplyCounts();
  uint64_t* Printed() const;
  uint64_t* InFile() const { return Printed() + 2 * size_t{workers_}; }
  uint64_t* FileBases() const { return InFile() + 2 * size_t{workers_}; }
  uint64_t* RotatedBases() const { return FileBases() + 2 * size_t{ranks_}; }
  uint64_t* FileWriters() const { return RotatedBases() + 2 * size_t{ranks_}; }
  size_t IndexOf(uint32_t rank, OutputStream stream) const {
    return 2 * size_t{rank} + (stream == OutputStream::kStdout ? 0 : 1);
  }

  const uint32_t ranks_, workers_;
  const std::string mark_;
  Shared* const shared_;
  const size_t bytes_;
};

// Takes packets out of what comes through the pipe; what is in none passes as it is. Pure.
class PacketReader {
 public:
  // Empty: there are no packets.
  explicit PacketReader(std::string mark) : mark_(std::move(mark)) {}

  // The text to keep of these bytes; a view into them or into this object.
  std::string_view Take(std::string_view bytes);

 private:
  const std::string mark_;
  std::string held_;  // the beginning of a packet
  std::string text_;
  uint64_t last_ = 0;
};

// Random, so that no output looks like it.
std::string MakeOutputMark();

// The packet with this number. Pure.
std::string PacketOf(std::string_view mark, uint64_t number, std::string_view text);
// So much text has room in one packet.
size_t MostPacketText(std::string_view mark);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_PRINTED_OUTPUT_H_
