// Writes lines of 100 bytes as fast as they are taken: log_writer LINES. A line is "line RANK
// NUMBER xx...", so that log_reader can tell which is missing. Blocks end in the middle of lines,
// as those of a buffered program do.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kLine = 100;
constexpr size_t kBlock = 65536;

bool WriteAll(const char* data, size_t size) {
  while (size > 0) {
    const ssize_t done = ::write(STDOUT_FILENO, data, size);
    if (done < 0) return false;
    data += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const char* rank = std::getenv("HOROVOD_RANK");
  if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const long lines = argc == 2 ? std::atol(argv[1]) : 0;
  if (lines < 1) {
    std::fprintf(stderr, "usage: log_writer LINES\n");
    return 2;
  }
  char line[kLine + 1];
  static char block[kBlock + kLine];
  size_t held = 0;
  for (long number = 0; number < lines; ++number) {
    const int head = std::snprintf(line, sizeof line, "line %04d %010ld ",
                                   rank != nullptr ? std::atoi(rank) : 0, number);
    std::memset(line + head, 'x', kLine - 1 - static_cast<size_t>(head));
    line[kLine - 1] = '\n';
    std::memcpy(block + held, line, kLine);
    held += kLine;
    if (held >= kBlock) {
      if (!WriteAll(block, kBlock)) return 1;
      held -= kBlock;
      std::memmove(block, block + kBlock, held);
    }
  }
  return WriteAll(block, held) ? 0 : 1;
}
