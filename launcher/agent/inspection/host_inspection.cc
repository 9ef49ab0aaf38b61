#include "launcher/agent/inspection/host_inspection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "configs/message_text.h"
#include "discovery/this_machine.h"
#include "launcher/agent/gpu/nvml.h"
#include "launcher/agent/workers/binding.h"
#include "launcher/output/output.h"
#include "launcher/process/proc_file.h"
#include "launcher/process/spawn.h"
#include "runtime/base/clock.h"
#include "runtime/base/cpu_quota.h"
#include "runtime/base/env.h"
#include "runtime/base/test_env.h"
#include "runtime/base/text/format.h"
#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

constexpr Duration kProgramLimit = std::chrono::seconds(8);
constexpr size_t kMaxOutput = 64 * 1024;

// Imports none of the user's packages: their versions come from the metadata.
constexpr const char* kScript = R"(
import sys
del sys.path[:1]
print("python.path=" + str(sys.executable))
print("python.version=" + ".".join(map(str, sys.version_info[:3])))
try:
    from importlib import metadata
    for name in ("numpy", "torch", "tensorflow", "tensorflow-cpu", "keras", "jax", "jaxlib",
                 "mxnet", "lightning", "pytorch-lightning", "transformers", "horovod", "mpi4py",
                 "nvidia-nccl-cu12", "nvidia-nccl-cu13"):
        try:
            print("library=" + name + " " + metadata.version(name))
        except Exception:
            pass
except ImportError:
    pass
try:  # torch itself is not imported: that takes seconds, and may ask the GPUs
    import importlib.util, os.path, re
    folder = os.path.dirname(importlib.util.find_spec("torch").origin)
    with open(os.path.join(folder, "version.py")) as file:
        cuda = re.search(r"^cuda\b[^=]*=\s*'([0-9.]+)'", file.read(), re.M)
    if cuda:
        print("torch.cuda=" + cuda.group(1))
except Exception:
    pass
)";

// Prints one line; a value cannot add lines.
void PrintFact(const std::string& key, const std::string& value) {
  std::string line = key + "=" + Printable(value, kMaxShownPath) + "\n";
  if (!WriteAll(STDOUT_FILENO, line)) ::_exit(1);  // the reader is gone
}

void ReportAll(const std::vector<std::string>& facts) {
  for (const std::string& fact : facts) {
    size_t equals = fact.find('=');
    PrintFact(fact.substr(0, equals), fact.substr(equals + 1));
  }
}

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

std::string Unquoted(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n\"");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n\"") - first + 1));
}

struct Answer {
  bool started = false, in_time = false;
  std::string text;  // stdout and stderr; or why it was not started
};

Answer Ask(const std::vector<std::string>& argv, const std::string& directory,
           const std::string& program = {}) {
  Answer answer;
  std::vector<std::string> environment;
  for (const auto& [name, value] : AllEnv()) environment.push_back(name + "=" + value);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return answer;
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  SpawnDescriptors descriptors;
  descriptors.stdout_fd = descriptors.stderr_fd = write_end.get();
  SpawnRequest request{argv, environment, directory};
  request.program = program;
  SpawnOutcome child = SpawnProgram(request, descriptors);
  write_end.Reset();
  if (child.pid == 0) {
    answer.text = child.reason;
    return answer;
  }
  answer.started = true;
  const TimePoint deadline = SteadyNow() + kProgramLimit;
  while (answer.text.size() < kMaxOutput) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyNow());
    pollfd poll{read_end.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&poll, 1, static_cast<int>(left.count())) == 0) break;
    char buffer[4096];
    ssize_t got = ::read(read_end.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    answer.in_time = got == 0;
    if (got <= 0) break;
    answer.text.append(buffer, static_cast<size_t>(got));
  }
  ::kill(-child.pid, SIGKILL);
  ::waitpid(child.pid, nullptr, 0);
  return answer;
}

void ReportLimit(const std::string& name, int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  PrintFact("limit." + name,
            limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur));
}

void ReportDisk(const std::string& name, const std::string& path) {
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0) return;
  PrintFact(name + ".total", std::to_string(disk.f_blocks * disk.f_frsize));
  PrintFact(name + ".free", std::to_string(disk.f_bavail * disk.f_frsize));
}

void ReportMachine() {
  utsname kernel{};
  if (::uname(&kernel) == 0) PrintFact("kernel", kernel.release);
  for (const std::string& line : LinesOf(ReadSmallFile("/etc/os-release"))) {
    if (line.starts_with("PRETTY_NAME=")) PrintFact("system", Unquoted(line.substr(12)));
  }
  PrintFact("cores", std::to_string(AllowedCpus().size()));
  if (const auto quota = OwnCpuQuota()) PrintFact("cores.quota", Format("{:.6g}", *quota));
  std::string meminfo = ReadProcFile("meminfo");
  PrintFact("memory.total", std::to_string(MeminfoBytes(meminfo, "MemTotal")));
  PrintFact("memory.available", std::to_string(MeminfoBytes(meminfo, "MemAvailable")));
  ReportLimit("memlock", RLIMIT_MEMLOCK);
  ReportLimit("nofile", RLIMIT_NOFILE);
  ReportLimit("nproc", RLIMIT_NPROC);
}

// systemd-logind ends a user's remaining processes after the last session has ended, unless the
// user lingers. Without logind nothing does.
void ReportLogind() {
  std::error_code error;
  if (!fs::exists("/run/systemd/seats", error)) return;
  std::vector<std::string> files = {ReadSmallFile("/etc/systemd/logind.conf")};
  std::vector<fs::path> parts;
  for (const char* folder : {"/usr/lib/systemd/logind.conf.d", "/etc/systemd/logind.conf.d"}) {
    for (const auto& entry : fs::directory_iterator(folder, error)) parts.push_back(entry.path());
  }
  std::sort(parts.begin(), parts.end(),
            [](const fs::path& a, const fs::path& b) { return a.filename() < b.filename(); });
  for (const fs::path& part : parts) files.push_back(ReadSmallFile(part.string()));
  std::string value = KillUserProcessesIn(files);
  PrintFact("logind.kill_user_processes", value.empty() ? "no" : value);
  const passwd* user = ::getpwuid(::getuid());
  bool linger =
      user != nullptr && fs::exists(std::string("/var/lib/systemd/linger/") + user->pw_name, error);
  PrintFact("logind.linger", linger ? "yes" : "no");
}

// From this process's own network namespace: /sys may show another one. 0: unknown.
int MtuOf(const std::string& interface) {
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return ::ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

// One line for each interface that is up and has an address: name, MTU, addresses.
void ReportNetwork() {
  std::map<std::string, std::string> addresses;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET6_ADDRSTRLEN] = {};
    if (one->ifa_addr->sa_family == AF_INET) {
      const auto* four = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
      ::inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      const auto* six = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) continue;
      ::inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
    }
    if (text[0] != '\0') addresses[one->ifa_name] += std::string(" ") + text;
  }
  ::freeifaddrs(all);
  for (const auto& [name, list] : addresses) {
    PrintFact("interface", Format("{} {}{}", name, MtuOf(name), list));
  }
  if (const auto wanted = GetEnv("NCCL_SOCKET_IFNAME")) PrintFact("nccl.interface", *wanted);
}

void ReportDevices() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/class/infiniband", error))
    PrintFact("rdma", entry.path().filename().string());
  const std::string root = GetTestEnv("HVD_TEST_GPU_HOST").value_or("");
  const uint32_t nodes = CountGpus(root + "/dev", std::nullopt);
  if (nodes == 0) return;
  PrintFact("gpu.nodes", std::to_string(nodes));
  Answer answer = Ask({"hvdrun", "agent", "--examine-gpus"}, "/", "/proc/self/exe");
  if (answer.in_time) return ReportAll(ParseGpuFacts(answer.text));
  PrintFact("gpu.trouble", answer.started ? "NVIDIA's driver did not answer within 8 s; a GPU "
                                            "may hang"
                                          : answer.text);
}

void ReportPython(const std::string& interpreter, const std::string& directory) {
  Answer answer = Ask({interpreter, "-c", kScript}, directory);
  if (answer.in_time) return ReportAll(PythonFacts(answer.text));
  PrintFact("python.trouble",
            answer.started ? interpreter + " did not answer within 8 s" : answer.text);
}

}  // namespace

void ExamineGpusHere() { ReportAll(GpuFacts(AskNvml())); }

void ExamineHere(const std::string& directory, const std::string& interpreter) {
  ReportMachine();
  ReportLogind();
  ReportNetwork();
  ReportDisk("shm", "/dev/shm");
  ReportDisk("tmp", "/tmp");
  ReportDevices();
  // The facts from here on may require a file server.
  if (const passwd* user = ::getpwuid(::getuid()); user != nullptr)
    ReportDisk("home", user->pw_dir);
  struct stat info {};
  int error = ::stat(directory.c_str(), &info) != 0 ? errno : !S_ISDIR(info.st_mode) ? ENOTDIR : 0;
  if (error == 0 && ::access(directory.c_str(), X_OK) != 0) error = errno;
  PrintFact("directory", error == 0 ? "ok" : std::strerror(error));
  if (error == 0) ReportDisk("directory", directory);
  ReportPython(interpreter, error == 0 ? directory : "/");
  PrintFact("done", "1");
}

std::string KillUserProcessesIn(const std::vector<std::string>& files) {
  constexpr std::string_view kKey = "KillUserProcesses=";
  std::string value;
  for (const std::string& file : files) {
    for (const std::string& line : LinesOf(file)) {
      std::string trimmed = Unquoted(line);
      if (!trimmed.starts_with(kKey)) continue;
      std::string word = trimmed.substr(kKey.size());
      value = word == "yes" || word == "true" || word == "1" || word == "on" ? "yes" : "no";
    }
  }
  return value;
}

uint64_t MeminfoBytes(std::string_view meminfo, std::string_view field) {
  for (const std::string& line : LinesOf(meminfo)) {
    if (!line.starts_with(std::string(field) + ":")) continue;
    return std::strtoull(line.c_str() + field.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

std::vector<std::string> ParseGpuFacts(std::string_view printed) {
  std::vector<std::string> facts;
  bool whole = false;
  for (const std::string& line : LinesOf(printed)) {
    whole = whole || line == "gpu.said=1";
    if (line.starts_with("gpu") && line.find('=') != std::string::npos) facts.push_back(line);
  }
  if (!whole) facts.emplace_back("gpu.trouble=the process that asked NVIDIA's driver has died");
  return facts;
}

std::vector<std::string> PythonFacts(std::string_view printed) {
  std::vector<std::string> facts;
  bool version = false;
  const std::vector<std::string> lines = LinesOf(printed);
  for (const std::string& line : lines) {
    version = version || line.starts_with("python.version=");
    if (line.starts_with("python.") || line.starts_with("library=") ||
        line.starts_with("torch.cuda="))
      facts.push_back(line);
  }
  if (version) return facts;
  return {"python.trouble=" + (lines.empty() ? "it said nothing" : "it said: " + lines.back())};
}

}  // namespace hvd
