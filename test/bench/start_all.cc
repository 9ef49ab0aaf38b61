// The floor under a launcher: starts N equal programs at once and waits for all. start_all N
// PROGRAM [ARGUMENT...]
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

extern char** environ;

int main(int argc, char** argv) {
  const int count = argc > 2 ? std::atoi(argv[1]) : 0;
  if (count < 1) {
    std::fprintf(stderr, "usage: start_all N PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  for (int i = 0; i < count; ++i) {
    pid_t pid = 0;
    if (::posix_spawnp(&pid, argv[2], nullptr, nullptr, argv + 2, environ) != 0) {
      std::fprintf(stderr, "start_all: cannot start %s\n", argv[2]);
      return 1;
    }
  }
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    int status = 0;
    if (::wait(&status) < 0 || status != 0) failed = 1;
  }
  return failed;
}
