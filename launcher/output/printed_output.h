// PrintedOutput: how much of each rank's output has been printed, in memory shared with the standby
// of hvdrun (launcher/detached/standby.h). Whenever hvdrun is killed, the standby knows which bytes
// the agents must resend, and none is printed twice or lost.
//
// Text goes through the pipe in numbered packets, each written atomically (PIPE_BUF). A packet and
// the counts after it are stored in the memory before it is written. If hvdrun is killed before it
// records the write, the successor counts the packet as printed (Recover) and its first Write
// repeats it; the reader of the pipe drops a packet number that it has seen (PacketReader).
//
//   packet: mark (a secret of the job, so that no output looks like it), number, length, text
//
// One thread may write at a time; the rest is thread-safe.
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
// hvdrun's own: prefixes and messages. After them `dropped` more bytes of the rank were left out.
struct PrintedSpan {
  size_t begin = 0, end = 0;
  uint32_t rank = 0;
  OutputStream stream = OutputStream::kStdout;
  uint64_t dropped = 0;
  // Elastic jobs: the worker that has this rank; bytes are counted per worker. None: worker number
  // = rank.
  std::optional<uint32_t> worker = {};
};

class PrintedOutput {
 public:
  // `ranks`: maximum number of ranks. `workers`: output is counted for workers below this number;
  // 0: `ranks`.
  static Result<std::shared_ptr<PrintedOutput>> Make(uint32_t ranks, std::string mark,
                                                     uint32_t workers = 0);
  ~PrintedOutput();
  PrintedOutput(const PrintedOutput&) = delete;

  // Writes a text with its spans, in order. False: the write failed (errno).
  bool Write(int fd, std::string_view text, const std::vector<PrintedSpan>& spans);
  // Call in the successor before reading a count: the packet that its predecessor may have been
  // writing counts as printed, and the next Write writes it first. No effect elsewhere.
  void Recover();

  // Bytes of the worker's stream printed since the worker started.
  uint64_t printed(uint32_t worker, OutputStream stream) const;
  // The writer of the last line if that is unfinished.
  struct OpenLine {
    uint32_t rank = 0, worker = 0;
    OutputStream stream = OutputStream::kStdout;
    bool is_open = false, returned = false;
  };
  OpenLine open_line() const;

  // Bytes of a rank's stream in files that were rotated away before the current one.
  uint64_t FileBase(uint32_t rank, OutputStream stream, bool file_exists);
  void BeginRotation(uint32_t rank, OutputStream stream, uint64_t bytes_of_file);
  void EndRotation(uint32_t rank, OutputStream stream);
  // The worker that last wrote to the file of a rank: `at` is the position of its first byte in the
  // file, `offset` that byte's position in the worker's stream.
  struct FileWriter {
    uint32_t worker = 0;
    uint64_t at = 0, offset = 0;
  };
  FileWriter file_writer(uint32_t rank, OutputStream stream) const;
  void SetFileWriter(uint32_t rank, OutputStream stream, const FileWriter& writer);
  // Bytes of the worker's stream written to files.
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

// Unwraps packets from the bytes of the pipe; bytes outside of packets pass unchanged. Pure.
class PacketReader {
 public:
  // An empty mark: the stream has no packets.
  explicit PacketReader(std::string mark) : mark_(std::move(mark)) {}

  // Returns the text in these bytes; a view into them or into this object.
  std::string_view Unwrap(std::string_view bytes);

 private:
  const std::string mark_;
  std::string held_;  // an incomplete packet
  std::string text_;
  uint64_t last_ = 0;
};

// A random mark, so that no worker's output contains it.
std::string MakeOutputMark();

// The packet with this number. Pure.
std::string PacketOf(std::string_view mark, uint64_t number, std::string_view text);
// Maximum size of the text in one packet.
size_t MostPacketText(std::string_view mark);

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_PRINTED_OUTPUT_H_
