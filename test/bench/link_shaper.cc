// link_shaper: a switch between hosts that are network namespaces, whose links have a rate, a
// delay, losses and a limit for each flow. The kernels that this is for have no netem.
//
//   link_shaper [--rate-mbit R] [--flow-mbit F] [--delay-us D] [--queue-us Q] [--loss PART]
//               [--seed S] FREE SHAPED...
//
// Makes a TAP device of each name in the network namespace that it is started in, says "ready", and
// forwards frames between them until it is killed. Frames from and to the first device,
// FREE, are not shaped. Others leave their host at R, enter the other one at R, arrive D after
// that, and are dropped where they would have to wait longer than Q. A TCP connection gets F.
// Frames may be as large as the kernel makes them (64 KiB): a loss counts each 1448 bytes.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr size_t kVirtioHeader = 10;
constexpr size_t kMostFrame = kVirtioHeader + 65536 + 64;
constexpr double kSegmentBytes = 1448;

struct Link {
  double ns_per_byte = 0, flow_ns_per_byte = 0;  // 0: no limit
  int64_t delay_ns = 0, queue_ns = 20'000'000;
  double loss = 0;  // of a segment
  uint64_t seed = 1;
};

struct Port {
  int fd = -1;
  bool shaped = false;
  int64_t up_free_ns = 0, down_free_ns = 0;  // when the last byte has passed
};

struct Frame {
  int64_t due_ns = 0;
  uint64_t number = 0;
  size_t to = 0;
  std::vector<std::byte> bytes;
};
struct Later {
  bool operator()(const Frame& a, const Frame& b) const {
    return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.number > b.number;
  }
};

int64_t Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "link_shaper: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

int OpenTap(const char* name) {
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) Fail("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  if (::ioctl(fd, TUNSETIFF, &request) != 0) Fail(name);
  if (::ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) Fail("offload");
  return fd;
}

class Shaper {
 public:
  Shaper(const Link& link, std::vector<Port> ports)
      : link_(link), ports_(std::move(ports)), random_(link.seed) {}

  [[noreturn]] void Run() {
    std::vector<pollfd> polled;
    for (const Port& port : ports_) polled.push_back({port.fd, POLLIN, 0});
    for (;;) {
      const int64_t wait = queue_.empty() ? 1'000'000'000 : queue_.top().due_ns - Now();
      const timespec limit{static_cast<time_t>(std::max<int64_t>(wait, 0) / 1'000'000'000),
                           static_cast<long>(std::max<int64_t>(wait, 0) % 1'000'000'000)};
      ::ppoll(polled.data(), polled.size(), &limit, nullptr);
      for (size_t from = 0; from < ports_.size(); ++from) ReadFrom(from);
      WriteDue();
    }
  }

 private:
  void ReadFrom(size_t from) {
    for (int i = 0; i < 64; ++i) {
      const ssize_t got = ::read(ports_[from].fd, buffer_.data(), buffer_.size());
      if (got <= static_cast<ssize_t>(kVirtioHeader) + 14) return;
      Forward(from, static_cast<size_t>(got));
    }
  }

  void Forward(size_t from, size_t bytes) {
    const std::byte* frame = buffer_.data() + kVirtioHeader;
    known_[AddressAt(frame + 6)] = from;
    const auto known = known_.find(AddressAt(frame));
    for (size_t to = 0; to < ports_.size(); ++to) {
      const bool meant = known == known_.end() ? to != from : to == known->second && to != from;
      if (meant) Queue(from, to, bytes);
    }
  }

  void Queue(size_t from, size_t to, size_t bytes) {
    const int64_t now = Now();
    int64_t due = now;
    if (ports_[from].shaped && ports_[to].shaped) {
      const double payload = static_cast<double>(bytes - kVirtioHeader);
      if (link_.loss > 0 && Lost(payload)) return;
      due = Departure(from, to, payload, now);
      if (due < 0) return;
      due += link_.delay_ns;
    }
    queue_.push({due, next_++, to, {buffer_.begin(), buffer_.begin() + static_cast<long>(bytes)}});
  }

  bool Lost(double bytes) {
    const double segments = std::ceil(bytes / kSegmentBytes);
    const double kept = std::pow(1 - link_.loss, segments);
    return std::uniform_real_distribution<double>(0, 1)(random_) > kept;
  }

  // When the last byte has passed both links and the limit of the flow; -1: the queue is full.
  int64_t Departure(size_t from, size_t to, double bytes, int64_t now) {
    const auto takes = static_cast<int64_t>(bytes * link_.ns_per_byte);
    const auto flow_takes = static_cast<int64_t>(bytes * link_.flow_ns_per_byte);
    int64_t& up = ports_[from].up_free_ns;
    int64_t& down = ports_[to].down_free_ns;
    int64_t& flow = flow_free_ns_[FlowOf()];
    const int64_t begin = std::max({now, up, down - takes, flow});
    if (begin - now > link_.queue_ns) return -1;
    up = std::max(now, up) + takes;
    flow = std::max(now, flow) + flow_takes;
    down = std::max(up - takes, down) + takes;
    return std::max({up, down, flow});
  }

  // A number of the TCP connection and its direction; 0 of anything else.
  uint64_t FlowOf() const {
    const std::byte* frame = buffer_.data() + kVirtioHeader;
    const bool tcp4 = frame[12] == std::byte{8} && frame[13] == std::byte{0} &&
                      frame[14] == std::byte{0x45} && frame[23] == std::byte{6};
    if (!tcp4) return 0;
    uint32_t from = 0, to = 0, ports = 0;
    std::memcpy(&from, frame + 26, 4);
    std::memcpy(&to, frame + 30, 4);
    std::memcpy(&ports, frame + 34, 4);
    return (uint64_t{from ^ (to * 31)} << 32) | ports;
  }

  static uint64_t AddressAt(const std::byte* at) {
    uint64_t address = 0;
    std::memcpy(&address, at, 6);
    return address;
  }

  void WriteDue() {
    const int64_t now = Now();
    while (!queue_.empty() && queue_.top().due_ns <= now) {
      const Frame& frame = queue_.top();
      // One that the other side has no room for is lost, as on a real link.
      [[maybe_unused]] ssize_t sent =
          ::write(ports_[frame.to].fd, frame.bytes.data(), frame.bytes.size());
      queue_.pop();
    }
  }

  const Link link_;
  std::vector<Port> ports_;
  std::mt19937_64 random_;
  std::map<uint64_t, size_t> known_;          // port of an address
  std::map<uint64_t, int64_t> flow_free_ns_;  // when the last byte of a flow has passed
  std::priority_queue<Frame, std::vector<Frame>, Later> queue_;
  uint64_t next_ = 0;
  std::array<std::byte, kMostFrame> buffer_{};
};

double NsPerByte(double mbit) { return mbit > 0 ? 8000 / mbit : 0; }

}  // namespace

int main(int argc, char** argv) {
  Link link;
  std::vector<Port> ports;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      ports.push_back({OpenTap(argv[i]), !ports.empty()});
      continue;
    }
    const double value = i + 1 < argc ? std::atof(argv[++i]) : 0;
    if (word == "--rate-mbit") link.ns_per_byte = NsPerByte(value);
    if (word == "--flow-mbit") link.flow_ns_per_byte = NsPerByte(value);
    if (word == "--delay-us") link.delay_ns = static_cast<int64_t>(value * 1e3);
    if (word == "--queue-us") link.queue_ns = static_cast<int64_t>(value * 1e3);
    if (word == "--loss") link.loss = value;
    if (word == "--seed") link.seed = static_cast<uint64_t>(value);
  }
  if (ports.size() < 3) {
    std::fprintf(stderr, "link_shaper [OPTIONS] FREE SHAPED SHAPED...\n");
    return 2;
  }
  const sched_param first{.sched_priority = 1};
  (void)::sched_setscheduler(0, SCHED_FIFO, &first);  // a late frame is a slower link
  std::puts("ready");
  std::fflush(stdout);
  Shaper(link, std::move(ports)).Run();
}
