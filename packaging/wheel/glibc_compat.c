// What hvdrun, g++ 12 and its static libstdc++ and libgcc need of glibc beyond 2.28, in terms of what 2.28 has. Linked into each program and
// library of the wheel, and exported by none.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// 2.32. Zero, "there may be other threads", is always a right answer: libstdc++ then counts references by atomic instructions.
HIDDEN char __libc_single_threaded = 0;

// 2.36, by std::random_device.
HIDDEN uint32_t arc4random(void) {
  uint32_t value;
  ssize_t got;
  do {
    got = getrandom(&value, sizeof value, 0);
  } while (got < 0 && errno == EINTR);
  if (got != (ssize_t)sizeof value) abort();
  return value;
}

// 2.35, by the unwinder: the object that holds an address, and its table for exceptions. 0: found.
struct search {
  uintptr_t address;
  struct dl_find_object* result;
};

static int look(struct dl_phdr_info* info, size_t size, void* data) {
  struct search* search = data;
  uintptr_t start = UINTPTR_MAX, end = 0;
  void* table = NULL;
  int holds = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) table = (void*)from;
    if (header->p_type != PT_LOAD) continue;
    if (from < start) start = from;
    if (from + header->p_memsz > end) end = from + header->p_memsz;
    if (search->address >= from && search->address < from + header->p_memsz) holds = 1;
  }
  if (!holds) return 0;
  if (table == NULL) return -1;
  search->result->dlfo_flags = 0;
  search->result->dlfo_map_start = (void*)start;
  search->result->dlfo_map_end = (void*)end;
  search->result->dlfo_link_map = NULL;
  search->result->dlfo_eh_frame = table;
  return 1;
}

HIDDEN int _dl_find_object(void* address, struct dl_find_object* result) {
  struct search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

// 2.30, by std::condition_variable. Where glibc has it, it is called; elsewhere a wait for the steady clock is one for the other
// clock, in pieces of a second, so that a change of that clock moves a deadline by less. A piece that ends early is a spurious
// wake-up, which every caller must expect.
enum { kNanoseconds = 1000000000 };

typedef int ClockWait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);

static long long nanoseconds(const struct timespec* time) {
  return time->tv_sec * (long long)kNanoseconds + time->tv_nsec;
}

static int wait_in_pieces(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                          const struct timespec* deadline) {
  struct timespec now, until;
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, deadline);
  if (clock_gettime(clock, &now) != 0) return EINVAL;
  long long left = nanoseconds(deadline) - nanoseconds(&now);
  const int whole = left <= kNanoseconds;
  if (left < 0) left = 0;
  if (!whole) left = kNanoseconds;
  clock_gettime(CLOCK_REALTIME, &until);
  left += until.tv_nsec;
  until.tv_sec += left / kNanoseconds;
  until.tv_nsec = left % kNanoseconds;
  const int result = pthread_cond_timedwait(condition, mutex, &until);
  return result == ETIMEDOUT && !whole ? 0 : result;
}

HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* deadline) {
  static _Atomic(ClockWait*) known = NULL;
  ClockWait* function = atomic_load_explicit(&known, memory_order_relaxed);
  if (function == NULL) {
    function = (ClockWait*)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
    if (function == NULL) function = wait_in_pieces;
    atomic_store_explicit(&known, function, memory_order_relaxed);
  }
  return function(condition, mutex, clock, deadline);
}

// 2.30.
HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

// 2.32: "KILL" for SIGKILL; NULL for a number that is none.
HIDDEN const char* sigabbrev_np(int number) {
  static const char* const names[] = {
      [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",   [SIGTRAP] = "TRAP",     [SIGABRT] = "ABRT",
      [SIGBUS] = "BUS",   [SIGFPE] = "FPE",       [SIGKILL] = "KILL", [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV",     [SIGUSR2] = "USR2",
      [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP",
      [SIGTSTP] = "TSTP", [SIGTTIN] = "TTIN",     [SIGTTOU] = "TTOU", [SIGURG] = "URG",   [SIGXCPU] = "XCPU",     [SIGXFSZ] = "XFSZ",
      [SIGPROF] = "PROF", [SIGVTALRM] = "VTALRM", [SIGIO] = "POLL",   [SIGPWR] = "PWR",   [SIGSTKFLT] = "STKFLT", [SIGWINCH] = "WINCH",
      [SIGSYS] = "SYS"};
  return number > 0 && (size_t)number < sizeof names / sizeof *names ? names[number] : NULL;
}
