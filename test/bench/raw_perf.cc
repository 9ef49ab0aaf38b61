// The floor between hosts: the loops of hvd_perf around sockets alone. Every rank has a connection
// to every other one; up to 64 KiB each sends all it has to all, above that each sums up its slice
// and sends the sum. It waits by spinning, which no library can afford; only where there are more
// ranks than cores it sleeps until a socket is ready. Started by hvdrun with one rank on each host,
// with the folder RAW_PERF_FOLDER in which the ranks meet, and RAW_PERF_INTERFACE. Allreduce and
// barrier only.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cmd/hvd_perf/measure.h"
#include "runtime/base/align.h"

namespace {

constexpr size_t kWhole = size_t{1} << 16;  // bytes, up to which each sends all to all
constexpr size_t kScratch = size_t{1} << 17;
// All that is sent begins so, and all memory: some processors copy at a tenth of their speed
// between places that are almost the same in their pages (runtime/net/mesh/README.md).
constexpr size_t kAligned = 64;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "raw_perf: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

std::string Told(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) Die(std::string(name) + " is not set");
  return value;
}

sockaddr_in AddressOf(const std::string& interface) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) Die("getifaddrs");
  sockaddr_in found{};
  for (ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if (interface == at->ifa_name) std::memcpy(&found, at->ifa_addr, sizeof found);
  }
  ::freeifaddrs(all);
  if (found.sin_family != AF_INET) Die("no address of interface " + interface);
  found.sin_port = 0;
  return found;
}

// The bytes that cross one connection in one exchange. Received numbers are added to `sum` as they
// come, or stored where `in` points.
struct Traffic {
  const char* out = nullptr;
  size_t to_send = 0;
  char* in = nullptr;
  float* sum = nullptr;
  size_t to_receive = 0;
};

using Memory = std::unique_ptr<float, decltype(&std::free)>;

Memory Allocate(size_t bytes) {
  void* memory = std::aligned_alloc(kAligned, hvd::RoundUp(bytes, kAligned));
  return {static_cast<float*>(memory), &std::free};
}

// One connection to each other rank.
class Sockets {
 public:
  Sockets(int rank, int size, const std::filesystem::path& folder, const std::string& interface)
      : rank_(rank),
        size_(size),
        crowded_(size > static_cast<int>(std::thread::hardware_concurrency())),
        peers_(static_cast<size_t>(size), -1) {
    for (int peer = 0; peer < size; ++peer) scratch_.push_back(Allocate(kScratch));
    sockaddr_in own = AddressOf(interface);
    const int listener = Listen(own);
    Publish(folder, own);
    for (int peer = 0; peer < rank; ++peer) Connect(peer, folder);
    for (int count = rank + 1; count < size; ++count) Accept(listener);
    ::close(listener);
  }
  ~Sockets() {
    for (int peer : peers_) {
      if (peer >= 0) ::close(peer);
    }
  }
  Sockets(const Sockets&) = delete;

  void Barrier() {
    using Word = std::array<char, kAligned>;
    Word out{};
    std::vector<Word> in(peers_.size());
    std::vector<Traffic> traffic(peers_.size());
    for (size_t peer = 0; peer < peers_.size(); ++peer) {
      traffic[peer] = {.out = out.data(),
                       .to_send = out.size(),
                       .in = in[peer].data(),
                       .to_receive = out.size()};
    }
    Exchange(traffic);
  }

  void Allreduce(float* data, size_t count) {
    if (count * sizeof(float) <= kWhole) {
      Whole(data, count);
    } else {
      Sliced(data, count);
    }
  }

 private:
  static int Listen(sockaddr_in& own) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof own;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&own), length) != 0) Die("bind");
    if (::listen(listener, 64) != 0) Die("listen");
    if (::getsockname(listener, reinterpret_cast<sockaddr*>(&own), &length) != 0)
      Die("getsockname");
    return listener;
  }

  void Publish(const std::filesystem::path& folder, const sockaddr_in& own) const {
    const std::filesystem::path file = folder / std::to_string(rank_);
    const std::filesystem::path draft = file.string() + ".draft";
    std::ofstream(draft).write(reinterpret_cast<const char*>(&own), sizeof own);
    std::filesystem::rename(draft, file);
  }

  void Connect(int peer, const std::filesystem::path& folder) {
    const std::filesystem::path file = folder / std::to_string(peer);
    while (!std::filesystem::exists(file))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    sockaddr_in address{};
    std::ifstream(file).read(reinterpret_cast<char*>(&address), sizeof address);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) Die("connect");
    if (::send(fd, &rank_, sizeof rank_, 0) != sizeof rank_) Die("send");
    Keep(peer, fd);
  }

  void Accept(int listener) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    int peer = -1;
    if (fd < 0 || ::recv(fd, &peer, sizeof peer, MSG_WAITALL) != sizeof peer) Die("accept");
    if (peer <= rank_ || peer >= size_) Die("a stranger connected");
    Keep(peer, fd);
  }

  void Keep(int peer, int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    peers_[static_cast<size_t>(peer)] = fd;
  }

  void Whole(float* data, size_t count) {
    const size_t bytes = count * sizeof(float);
    std::vector<Traffic> traffic(peers_.size());
    for (size_t peer = 0; peer < peers_.size(); ++peer) {
      traffic[peer] = {.out = reinterpret_cast<const char*>(data),
                       .to_send = bytes,
                       .in = reinterpret_cast<char*>(scratch_[peer].get()),
                       .to_receive = bytes};
    }
    Exchange(traffic);
    for (size_t peer = 0; peer < peers_.size(); ++peer) {
      if (peers_[peer] >= 0) Add(data, scratch_[peer].get(), count);
    }
  }

  void Sliced(float* data, size_t count) {
    const auto own = static_cast<size_t>(rank_);
    auto start = [&](size_t slice) { return count * slice / peers_.size(); };
    auto bytes = [&](size_t slice) { return (start(slice + 1) - start(slice)) * sizeof(float); };
    std::vector<Traffic> parts(peers_.size()), sums(peers_.size());
    for (size_t peer = 0; peer < peers_.size(); ++peer) {
      float* theirs = data + start(peer);
      parts[peer] = {.out = reinterpret_cast<const char*>(theirs),
                     .to_send = bytes(peer),
                     .sum = data + start(own),
                     .to_receive = bytes(own)};
      sums[peer] = {.out = reinterpret_cast<const char*>(data + start(own)),
                    .to_send = bytes(own),
                    .in = reinterpret_cast<char*>(theirs),
                    .to_receive = bytes(peer)};
    }
    Exchange(parts);
    Exchange(sums);
  }

  static void Add(float* sum, const float* more, size_t count) {
    for (size_t i = 0; i < count; ++i) sum[i] += more[i];
  }

  void Exchange(std::vector<Traffic>& traffic) {
    std::vector<size_t> received(peers_.size());
    for (bool busy = true; busy;) {
      busy = false;
      bool moved = false;
      for (size_t peer = 0; peer < peers_.size(); ++peer) {
        if (peers_[peer] < 0) continue;
        moved = Send(peers_[peer], traffic[peer]) || moved;
        moved = Receive(peer, traffic[peer], received[peer]) || moved;
        busy = busy || traffic[peer].to_send > 0 || traffic[peer].to_receive > 0;
      }
      if (busy && !moved && crowded_) Sleep(traffic);
    }
  }

  // Until a socket can take or give some of the rest.
  void Sleep(const std::vector<Traffic>& traffic) {
    std::vector<pollfd> waiting;
    for (size_t peer = 0; peer < peers_.size(); ++peer) {
      const int events =
          (traffic[peer].to_receive > 0 ? POLLIN : 0) | (traffic[peer].to_send > 0 ? POLLOUT : 0);
      if (peers_[peer] >= 0 && events != 0)
        waiting.push_back({peers_[peer], static_cast<short>(events), 0});
    }
    ::poll(waiting.data(), waiting.size(), -1);
  }

  static bool Send(int fd, Traffic& traffic) {
    if (traffic.to_send == 0) return false;
    const ssize_t sent = ::send(fd, traffic.out, traffic.to_send, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) Die("send");
    if (sent <= 0) return false;
    traffic.out += sent;
    traffic.to_send -= static_cast<size_t>(sent);
    return true;
  }

  // `received` counts the bytes of this exchange so far.
  bool Receive(size_t peer, Traffic& traffic, size_t& received) {
    if (traffic.to_receive == 0) return false;
    char* to = traffic.in + received;
    size_t most = traffic.to_receive;
    const size_t used = received % kScratch;
    if (traffic.sum != nullptr) {
      to = reinterpret_cast<char*>(scratch_[peer].get()) + used;
      most = std::min(most, kScratch - used);
    }
    const ssize_t got = ::recv(peers_[peer], to, most, MSG_DONTWAIT);
    if (got < 0 && errno != EAGAIN) Die("recv");
    if (got == 0) Die("the other side has left");
    if (got < 0) return false;
    const auto bytes = static_cast<size_t>(got);
    if (traffic.sum != nullptr) {
      const size_t first = received / sizeof(float), last = (received + bytes) / sizeof(float);
      Add(traffic.sum + first, scratch_[peer].get() + used / sizeof(float), last - first);
    }
    received += bytes;
    traffic.to_receive -= bytes;
    return true;
  }

  const int rank_, size_;
  const bool crowded_;
  std::vector<int> peers_;       // -1 for this rank
  std::vector<Memory> scratch_;  // of each peer
};

}  // namespace

int main(int argc, char** argv) {
  hvd_perf::Options options = hvd_perf::ParseArguments(argc, argv, "raw_perf");
  hvd_perf::Library library;
  library.rank = std::atoi(Told("HOROVOD_RANK").c_str());
  library.size = std::atoi(Told("HOROVOD_SIZE").c_str());
  Sockets sockets(library.rank, library.size, Told("RAW_PERF_FOLDER"), Told("RAW_PERF_INTERFACE"));
  library.allreduce = [&](float* data, size_t count) { sockets.Allreduce(data, count); };
  library.barrier = [&] { sockets.Barrier(); };
  library.allocate = [](size_t bytes, bool) { return Allocate(bytes).release(); };
  library.free = [](float* memory, bool) { std::free(memory); };
  const bool correct = hvd_perf::RunAll(library, options);
  library.barrier();
  return correct ? 0 : 1;
}
