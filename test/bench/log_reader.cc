// Starts a launcher whose workers are log_writer, reads all it prints from a pipe, and says in JSON
// how long that took and whether each line came once and whole: log_reader RANKS LINES COMMAND
// [ARGUMENT...]
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

extern char** environ;

namespace {

constexpr size_t kLine = 99;  // without its end
constexpr std::string_view kTag = "<stdout>:";

class Lines {
 public:
  Lines(size_t ranks, size_t lines) : lines_(lines), seen_(ranks * lines, 0) {}

  void Take(std::string_view line) {
    const size_t tag = line.substr(0, 40).find(kTag);
    if (tag == std::string_view::npos) {
      ++damaged_;
      return;
    }
    line.remove_prefix(tag + kTag.size());
    if (line.size() > kLine && line.front() == ' ') line.remove_prefix(1);
    const bool shaped =
        line.size() == kLine && line.substr(0, 5) == "line " && line[9] == ' ' && line[20] == ' ';
    if (!shaped || line.find_first_not_of('x', 21) != std::string_view::npos) {
      ++damaged_;
      return;
    }
    const size_t rank = Number(line.substr(5, 4)), number = Number(line.substr(10, 10));
    if (number >= lines_ || rank >= seen_.size() / lines_) {
      ++damaged_;
    } else if (seen_[rank * lines_ + number] != 0) {
      ++doubled_;
    } else {
      seen_[rank * lines_ + number] = 1;
      ++whole_;
    }
  }

  void Print(double seconds, int status) const {
    std::printf(
        "{\"seconds\": %.6f, \"status\": %d, \"whole\": %zu, \"lost\": %zu, \"doubled\": %zu, "
        "\"damaged\": %zu}\n",
        seconds, status, whole_, seen_.size() - whole_, doubled_, damaged_);
  }

 private:
  static size_t Number(std::string_view digits) {
    size_t value = 0;
    for (const char digit : digits) value = value * 10 + static_cast<size_t>(digit - '0');
    return value;
  }

  size_t lines_;
  std::vector<char> seen_;
  size_t whole_ = 0, doubled_ = 0, damaged_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const long ranks = argc > 3 ? std::atol(argv[1]) : 0, count = argc > 3 ? std::atol(argv[2]) : 0;
  int ends[2];
  if (ranks < 1 || count < 1 || ::pipe2(ends, O_CLOEXEC) != 0) {
    std::fprintf(stderr, "usage: log_reader RANKS LINES COMMAND [ARGUMENT...]\n");
    return 2;
  }
  Lines lines(static_cast<size_t>(ranks), static_cast<size_t>(count));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const auto start = std::chrono::steady_clock::now();
  pid_t pid = 0;
  if (::posix_spawnp(&pid, argv[3], &actions, nullptr, argv + 3, environ) != 0) {
    std::fprintf(stderr, "log_reader: cannot start %s\n", argv[3]);
    return 1;
  }
  ::close(ends[1]);

  std::vector<char> buffer(1 << 20);
  size_t held = 0;  // the beginning of a line whose end has not come
  for (;;) {
    if (held == buffer.size()) buffer.resize(2 * buffer.size());
    const ssize_t got = ::read(ends[0], buffer.data() + held, buffer.size() - held);
    if (got <= 0) break;
    const char* at = buffer.data();
    const char* const end = at + held + got;
    while (const void* newline = std::memchr(at, '\n', static_cast<size_t>(end - at))) {
      const char* const stop = static_cast<const char*>(newline);
      lines.Take({at, static_cast<size_t>(stop - at)});
      at = stop + 1;
    }
    held = static_cast<size_t>(end - at);
    std::memmove(buffer.data(), at, held);
  }
  if (held > 0) lines.Take({buffer.data(), held});
  int status = 0;
  ::waitpid(pid, &status, 0);
  lines.Print(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
              status);
  return 0;
}
