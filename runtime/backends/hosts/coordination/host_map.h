// HostMap: which ranks of the world are on which host, the same on every rank.
#ifndef HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_HOST_MAP_H_
#define HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_HOST_MAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace hvd {

struct HostMap {
  std::vector<uint32_t> host_of;  // by world rank
  uint32_t rank = 0;              // this process

  uint32_t here() const { return host_of[rank]; }
};

// The members of a set by host, from which every host derives the same data layout.
struct HostParts {
  struct Part {
    uint32_t host = 0;
    std::vector<uint32_t> members;  // indices in the set, ascending
  };
  std::vector<Part> parts;  // ascending by host, without hosts that have no member

  HostParts(const HostMap& map, std::span<const uint32_t> ranks) {
    for (uint32_t i = 0; i < ranks.size(); ++i) {
      const uint32_t host = map.host_of[ranks[i]];
      size_t at = 0;
      while (at < parts.size() && parts[at].host < host) ++at;
      if (at == parts.size() || parts[at].host != host) {
        parts.insert(parts.begin() + static_cast<ptrdiff_t>(at), Part{host, {}});
      }
      parts[at].members.push_back(i);
    }
  }
};

// Caches those of the last set: a script has few sets and uses one repeatedly.
class LastHostParts {
 public:
  std::shared_ptr<const HostParts> Of(const HostMap& map, const std::vector<uint32_t>& ranks) {
    if (parts_ == nullptr || ranks_ != ranks) {
      ranks_ = ranks;
      parts_ = std::make_shared<HostParts>(map, ranks);
    }
    return parts_;
  }

 private:
  std::vector<uint32_t> ranks_;
  std::shared_ptr<const HostParts> parts_;
};

// The first of `ranks` on each host that has any, in order of hosts. No ranks: those of the world.
inline std::vector<uint32_t> FirstMembers(const HostMap& map, std::span<const uint32_t> ranks) {
  const size_t count = ranks.empty() ? map.host_of.size() : ranks.size();
  std::vector<std::optional<uint32_t>> first;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t rank = ranks.empty() ? static_cast<uint32_t>(i) : ranks[i];
    const uint32_t host = map.host_of[rank];
    if (host >= first.size()) first.resize(host + 1);
    if (!first[host]) first[host] = rank;
  }
  std::vector<uint32_t> found;
  for (const std::optional<uint32_t>& rank : first) {
    if (rank) found.push_back(*rank);
  }
  return found;
}

}  // namespace hvd

#endif  // HVD_RUNTIME_BACKENDS_HOSTS_COORDINATION_HOST_MAP_H_
