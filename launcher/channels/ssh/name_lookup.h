// NameLookup: resolves host names concurrently. getaddrinfo blocks, for seconds if a name server
// does not answer, so it runs in its own threads; these are never joined, so that hvdrun can exit
// at any time.
#ifndef HVD_LAUNCHER_CHANNELS_SSH_NAME_LOOKUP_H_
#define HVD_LAUNCHER_CHANNELS_SSH_NAME_LOOKUP_H_

#include <sys/socket.h>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hvd {

struct FoundAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string text;  // "10.0.0.1 port 22"

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

struct LookupResult {
  std::vector<FoundAddress> addresses;  // in the order to try them
  std::string reason;                   // why there are no addresses
  bool may_pass = false;                // transient: may resolve later
};

class NameLookup {
 public:
  using Done = std::function<void(LookupResult)>;

  explicit NameLookup(asio::io_context& io);

  // `family`: AF_UNSPEC, AF_INET or AF_INET6. `done` is called once, later, on the io_context.
  void Find(const std::string& name, uint16_t port, int family, Done done);

 private:
  struct Shared;
  void Wait();
  void Collect();

  std::shared_ptr<Shared> shared_;
  asio::posix::stream_descriptor bell_;
  std::map<uint64_t, Done> open_;
  uint64_t next_ = 0;
  bool waiting_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_SSH_NAME_LOOKUP_H_
