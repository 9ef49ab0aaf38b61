// RelayEnd: the agent's part of connections between ranks whose hosts do not reach each other
// (relay_switch.h has the driver's). When a rank of this host looks up the address of an
// unreachable one, it gets a port on 127.0.0.1; bytes sent there go through the driver to the agent
// of the other host, which connects to the listener that its own rank registered in the directory.
// Handshake and frames of the mesh pass unchanged: the relay knows only who may connect to whom.
//
// A connection is relayed only after a mesh hello that proves the job's key. Owned by the agent;
// one thread, that of the io_context.
#ifndef HVD_LAUNCHER_OVERLAY_RELAY_RELAY_END_H_
#define HVD_LAUNCHER_OVERLAY_RELAY_RELAY_END_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/overlay/relay/relay_sockets.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/net/layout.h"

namespace hvd {

// RelayProbe: measures a route through the driver: a few single bytes for the latency, then bulk
// data for kSending for the bandwidth. Pure: time is passed in, and the owner sends.
class RelayProbe {
 public:
  static constexpr Duration kSending = std::chrono::milliseconds(300);
  static constexpr Duration kLimit = std::chrono::seconds(10);  // for the whole probe
  static constexpr uint64_t kMost = 32 * 1024 * 1024;           // bytes

  explicit RelayProbe(TimePoint now) : began_(now) {}

  // Number of bytes to send now. Call until it returns 0.
  size_t Next(TimePoint now);
  // `bytes` came back as credit.
  void Arrived(uint64_t bytes, TimePoint now);

  bool over(TimePoint now) const;
  // When the probe times out.
  TimePoint deadline() const { return began_ + kLimit; }
  // After over(); the owner fills in the host.
  RelayMeasured result() const;

 private:
  bool enough(TimePoint now) const { return sent_ >= kMost || now >= sending_since_ + kSending; }

  const TimePoint began_;
  int pings_ = 0;  // answered
  TimePoint ping_sent_{};
  std::optional<Duration> latency_;  // the best
  TimePoint sending_since_{}, last_arrival_{};
  uint64_t sent_ = 0, arrived_ = 0;  // of bulk data
  uint64_t in_flight_ = 0;
};

class RelayPort;

class RelayEnd {
 public:
  using Send = std::function<void(const ToDriver& message)>;

  RelayEnd(asio::io_context& io, Send send);
  ~RelayEnd();
  RelayEnd(const RelayEnd&) = delete;

  // Sets the hosts that need the relay; measures the route to each.
  void Use(const UseRelay& use);
  // The job's key, and where all ranks are.
  void SetWorld(std::string job_key, std::vector<RankPlace> places);
  // Drops ports and addresses of earlier generations; their connections end with their ranks.
  void BeginGeneration(uint64_t generation);
  // A rank of this host put an entry into the directory.
  void NoteEntry(uint64_t generation, const std::string& key, const std::string& value);
  // The value of an entry as ranks of this host see it.
  std::string ValueFor(uint64_t generation, const std::string& key, const std::string& value);

  void Handle(const RelayOpen& open);
  void Handle(const RelayData& data);
  void Handle(const RelayClose& close);
  void Handle(const RelayCredit& credit);
  // Closes everything, without messages.
  void Close();

 private:
  struct Connection {
    std::shared_ptr<RelaySocket> socket;  // empty: a probe by another host
    uint64_t owed = 0;                    // credit not yet returned
  };
  struct Probe {
    uint32_t host;
    RelayProbe probe;
  };

  void Accepted(uint32_t host, uint32_t rank, UniqueFd socket, std::string hello);
  void Add(uint64_t id, UniqueFd socket);
  void ReturnCredit(uint64_t id, uint64_t bytes, uint64_t at_least);
  void Ended(uint64_t id);
  void Drive(uint64_t id);
  void WatchProbes();
  uint64_t NextId() { return (static_cast<uint64_t>(host_) << 32) | ++last_number_; }

  asio::io_context& io_;
  Send send_;
  asio::steady_timer probe_timer_;
  uint32_t host_ = 0;
  std::set<uint32_t> relayed_;  // hosts
  std::string job_key_;
  std::vector<RankPlace> places_;
  uint64_t generation_ = 0;
  std::map<uint32_t, std::string> records_;               // of ranks of this host, by rank
  std::map<uint32_t, std::unique_ptr<RelayPort>> ports_;  // by rank on another host
  std::map<uint64_t, Connection> connections_;
  std::map<uint64_t, Probe> probes_;
  uint32_t last_number_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_OVERLAY_RELAY_RELAY_END_H_
