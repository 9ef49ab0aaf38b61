#include "launcher/process/spawn.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "configs/message_text.h"
#include "launcher/process/exec_size.h"
#include "launcher/process/proc_file.h"
#include "runtime/base/kernel_features.h"
#include "runtime/base/status.h"
#include "runtime/base/text/path_text.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

constexpr size_t kMaxShownWord = 60;

bool IsName(std::string_view text) {
  const auto is_letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  if (text.empty() || !is_letter(text.front())) return false;
  return std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

bool IsBuiltin(std::string_view word) {
  constexpr std::array<std::string_view, 12> kBuiltins = {"source", ".",     "cd",    "export",
                                                          "ulimit", "umask", "alias", "set",
                                                          "unset",  "eval",  "exec",  "module"};
  return std::ranges::find(kBuiltins, word) != kBuiltins.end();
}

std::string Joined(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + word;
  return Printable(text, kMaxShownWord);
}

// Why a command that was not found is not a program, and what to type instead. Pure. Follows "the
// command 'FOO=1' ": "sets a variable, which only a shell does; ...". Empty: it looks like the name
// of a program.
std::string WhyNoProgram(const std::vector<std::string>& argv) {
  const std::string& word = argv[0];
  if (const std::string_view sign = TypographicSignIn(word); !sign.empty())
    return "has " + std::string(sign) +
           " in it, as word processors and web pages put it; type it again by hand";
  const size_t equals = word.find('=');
  if (equals != std::string::npos && IsName(std::string_view(word).substr(0, equals)))
    return "sets a variable, which only a shell does; put -x " + Printable(word, kMaxShownWord) +
           " before the command, or env in front of it";
  if (word.find_first_of(" \t\n") != std::string::npos)
    return "is a whole command in one word; leave out the quotes around it, or start a shell: sh "
           "-c '...'";
  if (IsBuiltin(word))
    return "is a part of the shell and no program; start a shell: bash -c '" + Joined(argv) +
           " && ...'";
  return "";
}

std::string ValueOf(const std::vector<std::string>& environment, std::string_view name,
                    const char* fallback) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return fallback;
}

// access() checks the real ids; faccessat(AT_EACCESS) checks the effective ones but needs
// faccessat2 (Linux 5.8), which seccomp filters may refuse with any error. So it is only used where
// it makes a difference, and is never decisive.
int MayRun(const char* path) {
  if (::access(path, X_OK) == 0) return 0;
  const int error = errno;
  const bool same_ids = ::geteuid() == ::getuid() && ::getegid() == ::getgid();
  return !same_ids && ::faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : error;
}

int CheckProgram(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno;
  if (!S_ISREG(info.st_mode)) return EACCES;
  return MayRun(path.c_str());
}

// The pointers that exec needs, as C arrays; the strings live in the request.
std::vector<char*> Pointers(const std::vector<std::string>& strings, size_t reserve_front = 0) {
  std::vector<char*> pointers(reserve_front, nullptr);
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<unsigned long> CpuMask(const std::vector<int>& cpus) {
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (int number : cpus) {
    auto cpu = static_cast<size_t>(number);
    if (mask.size() <= cpu / kBits) mask.resize(cpu / kBits + 1);
    mask[cpu / kBits] |= 1UL << (cpu % kBits);
  }
  return mask;
}

// By their numbers in the child, from kKeptDescriptor on; -1: none. All differ.
using KeptDescriptors = std::array<int, kCommitsDescriptor - kKeptDescriptor + 1>;

struct ChildPlan {
  const char* path;
  const char* directory;
  char* const* argv;
  char* const* shell_argv;  // /bin/sh path args..., for a script without "#!"
  char* const* environment;
  int stdin_fd, stdout_fd, stderr_fd;
  KeptDescriptors kept;
  bool dies_with_us, names_reader;
  const rlimit* descriptor_limit;
  pid_t parent;
  bool close_range;
  int cgroup_fd;
  const std::vector<unsigned long>* cpu_mask;
};

// The numbers tell the parent what failed.
enum class ChildStage : int { kSetup, kDirectory, kExec };

void ResetSignals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// The record that the kernel writes for getdents64.
struct KvEntry {
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[];
};

// The descriptor number of a name in /proc/self/fd; -1 for "." and "..".
int DescriptorNumber(const char* name) {
  int number = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9') return -1;
    number = number * 10 + (*name - '0');
  }
  return number;
}

// Closes every descriptor from `first` on, without close_range (before Linux 5.9): by /proc, else
// one by one.
void CloseOneByOne(int first) {
  int folder = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
  if (folder < 0) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = first; fd < static_cast<int>(limit.rlim_cur); ++fd) ::close(fd);
    return;
  }
  alignas(KvEntry) char entries[4096];
  long got = 0;
  while ((got = ::syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const KvEntry*>(entries + at);
      at += entry->length;
      int fd = DescriptorNumber(entry->name);
      if (fd >= first && fd != folder) ::close(fd);
    }
  }
  ::close(folder);
}

void CloseFrom(int first, bool close_range) {
#ifdef SYS_close_range
  if (close_range && ::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0) == 0) return;
#endif
  CloseOneByOne(first);
}

// False: it cannot be kept. It may already have the right number, and must survive exec.
bool Keep(int fd, int number) {
  return fd == number ? ::fcntl(fd, F_SETFD, 0) == 0 : ::dup2(fd, number) >= 0;
}

// False: one cannot be kept. Closes all others.
bool KeepOnly(const KeptDescriptors& kept, bool close_range) {
  int number = kKeptDescriptor;
  for (int fd : kept) {
    if (fd < 0) {
      ::close(number);
    } else if (!Keep(fd, number)) {
      return false;
    }
    ++number;
  }
  CloseFrom(number, close_range);  // also descriptors inherited from our parent
  return true;
}

// Runs in the child, in the parent's memory: system calls only, no allocation, no return but by
// exec or on failure.
int RunChild(const ChildPlan& plan, volatile ChildStage* stage) {
  ::setsid();
  if (plan.dies_with_us && ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return errno;
  if (::getppid() != plan.parent) return ESRCH;  // it died before the line above
  // It applies until the process ends, through exec. Without it stacks cannot be read, which does
  // not prevent the start.
  if (plan.names_reader) ::prctl(PR_SET_PTRACER, plan.parent, 0, 0, 0);
  if (::dup2(plan.stdin_fd, 0) < 0 || ::dup2(plan.stdout_fd, 1) < 0 ||
      ::dup2(plan.stderr_fd, 2) < 0) {
    return errno;
  }
  if (!KeepOnly(plan.kept, plan.close_range)) return errno;
  if (!plan.cpu_mask->empty() &&
      ::syscall(SYS_sched_setaffinity, 0, plan.cpu_mask->size() * sizeof(unsigned long),
                plan.cpu_mask->data()) != 0) {
    return errno;
  }
  if (plan.descriptor_limit != nullptr) ::setrlimit(RLIMIT_NOFILE, plan.descriptor_limit);
  *stage = ChildStage::kDirectory;
  if (::chdir(plan.directory) != 0) return errno;
  *stage = ChildStage::kExec;
  ResetSignals();
  ::execve(plan.path, plan.argv, plan.environment);
  if (errno == ENOEXEC) ::execve("/bin/sh", plan.shell_argv, plan.environment);
  return errno;
}

// vfork into a cgroup (Linux 5.7): moving a process there later takes the kernel 16 ms. Must be
// part of the caller's frame, like vfork itself. Below 0: it cannot be done.
[[gnu::always_inline]] inline pid_t VforkInto(int cgroup_fd) {
#if defined(__x86_64__) && defined(SYS_clone3) && defined(CLONE_INTO_CGROUP) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  if (cgroup_fd < 0) return -1;
  clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<uint64_t>(cgroup_fd);
  long pid = SYS_clone3;
  asm volatile("syscall" : "+a"(pid) : "D"(&args), "S"(sizeof args) : "rcx", "r11", "memory");
  return static_cast<pid_t>(pid);
#else
  static_cast<void>(cgroup_fd);
  return -1;
#endif
}

// The child of vfork uses this stack until it execs, so it needs its own frame.
[[gnu::noinline]] pid_t ForkAndRun(const ChildPlan& plan, volatile ChildStage* stage,
                                   volatile int* error) {
  pid_t pid = VforkInto(plan.cgroup_fd);
  if (pid < 0) pid = ::vfork();
  if (pid != 0) return pid;
  *error = RunChild(plan, stage);
  ::_exit(127);
}

using KeptCopies = std::array<UniqueFd, std::tuple_size_v<KeptDescriptors>>;

// Moves descriptors whose number another one gets in the child. False (errno): there is no free
// number.
bool MoveAside(KeptDescriptors& kept, KeptCopies& copies) {
  for (size_t i = 0; i < kept.size(); ++i) {
    const bool in_the_way = kept[i] >= kKeptDescriptor && kept[i] <= kCommitsDescriptor &&
                            kept[i] != kKeptDescriptor + static_cast<int>(i);
    if (!in_the_way) continue;
    copies[i].Reset(::fcntl(kept[i], F_DUPFD_CLOEXEC, kCommitsDescriptor + 1));
    if (!copies[i].valid()) return false;
    kept[i] = copies[i].get();
  }
  return true;
}

// ": '/usr/bin/python3'", from the line that begins with "#!"; empty when there is none.
std::string InterpreterText(const std::string& path) {
  constexpr size_t kMostLine = 256;  // as much as the kernel reads
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char bytes[kMostLine];
  const ssize_t got = file.valid() ? ::read(file.get(), bytes, sizeof bytes) : 0;
  std::string_view line(bytes, got > 0 ? static_cast<size_t>(got) : 0);
  line = line.substr(0, line.find('\n'));
  if (!line.starts_with("#!")) return "";
  const bool dos = line.ends_with('\r');
  if (dos) line.remove_suffix(1);
  line.remove_prefix(std::min(line.find_first_not_of(" \t", 2), line.size()));
  const std::string named = ": " + Quoted(line, kMaxShownPath);
  if (!dos) return named;
  return named +
         " with a carriage return behind it; the file has the line ends of Windows, try "
         "sed -i 's/\\r$//' on it";
}

}  // namespace

FoundProgram FindProgram(const std::string& program, const std::string& path,
                         const std::string& directory) {
  if (program.find('/') != std::string::npos) {
    std::string absolute = PathIn(directory, program);
    int error = CheckProgram(absolute);
    return error == 0 ? FoundProgram{absolute, 0} : FoundProgram{"", error};
  }
  int error = ENOENT;
  if (program.empty()) return {"", ENOENT};
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find(':', begin), path.size());
    std::string folder = path.substr(begin, end - begin);
    std::string candidate = PathIn(directory, PathIn(folder.empty() ? "." : folder, program));
    int here = CheckProgram(candidate);
    if (here == 0) return {candidate, 0};
    if (here == EACCES) error = EACCES;
    begin = end + 1;
  }
  return {"", error};
}

std::string CannotStart(const SpawnRequest& request, int error) {
  const std::string& program = request.argv[0];
  bool has_slash = program.find('/') != std::string::npos;
  std::string shown = Printable(program, kMaxShownPath);
  std::string subject = "the command " + Quoted(program, kMaxShownPath);
  // "." is a folder in each folder of PATH.
  const bool looked = error == ENOENT || program == ".";
  const std::string no_program = looked ? WhyNoProgram(request.argv) : "";
  if (!no_program.empty()) return subject + " " + no_program;
  if (error == ENOENT && !has_slash) {
    struct stat info {};
    if (::stat(PathIn(request.directory, program).c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      return subject + " was not found in PATH, but a file of that name is in " +
             Printable(request.directory, kMaxShownPath) + "; try " +
             (program.ends_with(".py") ? "python " : "./") + shown;
    }
    if (program.ends_with(".py")) {
      return "there is no script " + Quoted(program, kMaxShownPath) + " in " +
             Printable(request.directory, kMaxShownPath) +
             ", and no command of that name in PATH; check the spelling and the folder";
    }
    return subject + " was not found in PATH (" +
           Printable(ValueOf(request.environment, "PATH", kDefaultPath), kMaxShownPath) +
           "); check the spelling or give its full path";
  }
  if (error == ENOENT || error == ENOTDIR) {
    struct stat info {};
    if (::stat(PathIn(request.directory, program).c_str(), &info) == 0) {
      return subject + " exists, but the interpreter named in its first line does not" +
             InterpreterText(PathIn(request.directory, program));
    }
    return subject + " does not exist (looked in " + Printable(request.directory, kMaxShownPath) +
           "); check the path";
  }
  if (error == EACCES) {
    struct stat info {};
    std::string absolute = PathIn(request.directory, program);
    if (::stat(absolute.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      return subject + " is a directory; name the program in it";
    }
    if (program.ends_with(".py")) {
      return subject + " is not executable; try python " + shown + ", or chmod +x " + shown;
    }
    return subject + " is not executable; try chmod +x " + shown;
  }
  if (error == E2BIG) {
    std::optional<std::string> why = WhyTooLong(request.argv, request.environment, LimitsHere());
    return subject + " cannot be started: " + why.value_or(std::strerror(error));
  }
  return subject + " cannot be started: " + std::strerror(error);
}

SpawnOutcome SpawnProgram(const SpawnRequest& request, const SpawnDescriptors& descriptors) {
  std::string path = ValueOf(request.environment, "PATH", kDefaultPath);
  const std::string& wanted = request.program.empty() ? request.argv[0] : request.program;
  FoundProgram program = FindProgram(wanted, path, request.directory);
  if (program.path.empty()) return {0, program.error, CannotStart(request, program.error)};
  UniqueFd null_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null_fd.valid()) {
    const int error = errno;
    return {0, error, SystemError("/dev/null cannot be opened", error).message()};
  }

  std::vector<char*> argv = Pointers(request.argv);
  std::vector<char*> shell_argv = Pointers(request.argv, 1);
  shell_argv[0] = const_cast<char*>("/bin/sh");
  shell_argv[1] = program.path.data();
  std::vector<char*> environment = Pointers(request.environment);
  ChildPlan plan{};
  plan.path = program.path.c_str();
  plan.directory = request.directory.c_str();
  plan.argv = argv.data();
  plan.shell_argv = shell_argv.data();
  plan.environment = environment.data();
  plan.stdin_fd = descriptors.stdin_fd >= 0 ? descriptors.stdin_fd : null_fd.get();
  plan.stdout_fd = descriptors.stdout_fd;
  plan.stderr_fd = descriptors.stderr_fd;
  plan.kept = {request.kept_fd, request.function_fd, descriptors.result_fd, request.commits_fd};
  KeptCopies copies;
  if (!MoveAside(plan.kept, copies))
    return {0, errno, std::string("a descriptor cannot be copied: ") + std::strerror(errno)};
  plan.dies_with_us = descriptors.dies_with_us;
  plan.names_reader =
      descriptors.read_by_us && MustNameReader(ReadProcFile("sys/kernel/yama/ptrace_scope"));
  plan.descriptor_limit = descriptors.descriptor_limit ? &*descriptors.descriptor_limit : nullptr;
  plan.parent = ::getpid();
  plan.close_range = !Without("close_range");
  plan.cgroup_fd = descriptors.cgroup_fd;
  std::vector<unsigned long> cpu_mask = CpuMask(request.cpus);
  plan.cpu_mask = &cpu_mask;

  // A handler of the parent must not run in the child, which shares its memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  volatile ChildStage stage = ChildStage::kSetup;
  volatile int error = 0;
  pid_t pid = ForkAndRun(plan, &stage, &error);
  int fork_error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);

  if (pid < 0)
    return {0, fork_error, std::string("no process could be made: ") + std::strerror(fork_error)};
  if (error == 0) return {pid, 0, ""};
  // The failed child is reaped with the agent's other children.
  if (stage == ChildStage::kExec) return {0, error, CannotStart(request, error)};
  std::string why = std::strerror(error);
  if (stage != ChildStage::kDirectory) return {0, EIO, "preparing the worker failed: " + why};
  return {0, EIO,
          "the working directory " + Printable(request.directory, kMaxShownPath) +
              " cannot be entered: " + why + "; workers start where hvdrun was started"};
}

// Scopes 2 and 3 reserve it for the administrator, or forbid it.
bool MustNameReader(std::string_view ptrace_scope) { return ptrace_scope.starts_with('1'); }

void CloseOtherDescriptors() { CloseFrom(kKeptDescriptor, !Without("close_range")); }

}  // namespace hvd
