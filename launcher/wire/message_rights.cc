#include "launcher/wire/message_rights.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <type_traits>
#include <variant>

#include "runtime/net/kv_store.h"
#include "runtime/net/mesh/mesh_resolver.h"

namespace hvd {
namespace {

std::string Number(uint64_t number) { return std::to_string(number); }

class SpeakerCheck {
 public:
  SpeakerCheck(TreeBlock hosts, const HostOfRank& host_of_rank)
      : hosts_(hosts), host_of_rank_(host_of_rank) {}

  template <typename Message>
  Status operator()(const Message& message) const {
    if constexpr (requires { message.rank; } && !std::is_same_v<Message, RelayOpen>) {
      return Rank(message.rank);  // in a RelayOpen it is a rank of the other host
    } else if constexpr (std::is_same_v<Message, RanksJoined>) {
      return Spans(message.spans);
    } else if constexpr (std::is_same_v<Message, PutKey>) {
      return Put(message);
    } else if constexpr (std::is_same_v<Message, WantKey>) {
      return Key(message.key);
    } else if constexpr (std::is_same_v<Message, RelayData>) {
      return Piece(message);
    } else {
      return Status::Ok();
    }
  }

 private:
  Status Rank(uint32_t rank) const {
    if (rank < host_of_rank_.size() && hosts_.Has(host_of_rank_[rank])) return Status::Ok();
    return InvalidArgument("its agent reported unknown rank " + Number(rank));
  }

  // No rank joins twice before the world begins.
  Status Spans(const std::vector<RankSpan>& spans) const {
    uint64_t ranks = 0;
    for (const RankSpan& span : spans) {
      ranks += span.count;
      if (span.count == 0 || ranks > host_of_rank_.size())
        return InvalidArgument("its agent says that more ranks joined than there are");
      for (uint64_t rank = span.first; rank < uint64_t{span.first} + span.count; ++rank) {
        if (Status status = Rank(static_cast<uint32_t>(rank)); !status.ok()) return status;
      }
    }
    return Status::Ok();
  }

  Status Put(const PutKey& put) const {
    HVD_RETURN_IF_ERROR(CheckEntry({put.generation, put.key, put.value}));
    const std::optional<uint32_t> rank = RankOfMeshKey(put.key);
    return rank && put.generation > 0 ? Rank(*rank) : Status::Ok();
  }

  Status Key(const std::string& key) const {
    if (CheckKvKey(key).ok()) return Status::Ok();
    return InvalidArgument("its agent names a key of " + Number(key.size()) +
                           " bytes, which is no key");
  }

  Status Piece(const RelayData& data) const {
    if (data.bytes.size() <= kRelayPiece) return Status::Ok();
    return InvalidArgument("its agent relays " + Number(data.bytes.size()) +
                           " bytes in one message; at most " + Number(kRelayPiece) +
                           " are allowed");
  }

  const TreeBlock hosts_;
  const HostOfRank& host_of_rank_;
};

}  // namespace

HostOfRank::HostOfRank(const std::vector<RankRun>& layout, uint32_t size) : size_(size) {
  uint32_t first_rank = 0;
  for (const RankRun& run : layout) {
    runs_.push_back({first_rank, run.host, std::max(run.count, 1U)});
    first_rank += run.count * run.hosts;
  }
}

uint32_t HostOfRank::operator[](uint32_t rank) const {
  auto next = std::ranges::upper_bound(runs_, rank, {}, &Run::first_rank);
  const Run& run = *std::prev(next);
  return run.host + (rank - run.first_rank) / run.ranks_per_host;
}

HostOfRank HostsOf(const std::vector<RankRun>& layout, uint32_t size) {
  return PlacesOf(layout, size).ok() ? HostOfRank(layout, size) : HostOfRank();
}

std::optional<uint32_t> WorkerIn(const ToDriver& message) {
  return std::visit(
      [](const auto& m) -> std::optional<uint32_t> {
        if constexpr (requires { m.rank; } && !std::is_same_v<std::decay_t<decltype(m)>, RelayOpen>)
          return m.rank;
        return std::nullopt;
      },
      message);
}

bool GoesByTree(const ToDriver& message) {
  return std::visit(
      [](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, PutKey> || std::is_same_v<M, WantKey>)
          return m.generation > 0;
        return std::is_same_v<M, WorkerStarted> || std::is_same_v<M, WorkerNotStarted> ||
               std::is_same_v<M, RankJoined> || std::is_same_v<M, RanksJoined> ||
               std::is_same_v<M, RankLeft> || std::is_same_v<M, RankLost> ||
               std::is_same_v<M, WorkerExited>;
      },
      message);
}

bool GoesByTree(const ToAgent& message) {
  return std::holds_alternative<BeginGeneration>(message) ||
         std::holds_alternative<KeyValue>(message) || std::holds_alternative<Resend>(message);
}

Status CheckSpeaker(const ToDriver& message, TreeBlock hosts, const HostOfRank& host_of_rank) {
  return std::visit(SpeakerCheck(hosts, host_of_rank), message);
}

Status CheckEntry(const KeyValue& entry) {
  if (!CheckKvKey(entry.key).ok())
    return InvalidArgument("its agent names a key of " + Number(entry.key.size()) +
                           " bytes, which is no key");
  if (entry.value.size() > kMaxKvValue)
    return InvalidArgument("its agent gives a key a value of " + Number(entry.value.size()) +
                           " bytes; at most " + Number(kMaxKvValue) + " are allowed");
  return Status::Ok();
}

Status CheckWorker(uint32_t worker, uint32_t host, const std::vector<Placement>& workers) {
  if (worker < workers.size() && workers[worker].host == host) return Status::Ok();
  return InvalidArgument("its agent reported unknown worker " + Number(worker));
}

uint64_t MostKeys(TreeBlock hosts, const HostOfRank& host_of_rank) {
  constexpr uint64_t kSpare = 1024;
  return (kSpare + host_of_rank.size()) * (hosts.end - hosts.root);
}

}  // namespace hvd
