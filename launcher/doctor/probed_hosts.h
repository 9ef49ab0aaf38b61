// ProbedHosts: the hosts that take part in the connectivity probe and pair measurements, and which
// of them each one reached. Messages use their numbers, in order of addition. Pure.
#ifndef HVD_LAUNCHER_DOCTOR_PROBED_HOSTS_H_
#define HVD_LAUNCHER_DOCTOR_PROBED_HOSTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/wire/kv_table.h"
#include "launcher/wire/messages.h"

namespace hvd {

class ProbedHosts {
 public:
  void Add(uint32_t host);
  void Clear();

  const std::vector<uint32_t>& hosts() const { return hosts_; }
  uint32_t size() const { return static_cast<uint32_t>(hosts_.size()); }
  // 0 for a host that was not added.
  uint32_t NumberOf(uint32_t host) const;
  // The numbers of the hosts that this host probes.
  std::vector<uint32_t> PartnersOf(uint32_t host) const;

  // The answer of a host: an address for each partner that it reached.
  void Note(uint32_t host, const ConnectivityProbed& answer);
  bool Reached(uint32_t from, uint32_t to) const { return reached_.contains({from, to}); }
  // As reported by the host; "" if not reported.
  std::string ReasonFor(uint32_t from, uint32_t to) const;
  // At least one partner is lost, and the host reached all partners that are not.
  bool MissedLostOnly(uint32_t host, const std::function<bool(uint32_t)>& is_lost) const;

 private:
  std::vector<uint32_t> hosts_;  // by number
  std::set<std::pair<uint32_t, uint32_t>> reached_;
  std::map<std::pair<uint32_t, uint32_t>, std::string> reasons_;
};

// ProbeDirectories: the key-value tables through which agents find each other for the connectivity
// probe and for pair measurements. Pure.
class ProbeDirectories {
 public:
  // A value with its recipient.
  using Answer = std::pair<uint32_t, KeyValue>;

  ProbeDirectories();

  // Returns the answers for hosts that wait for the key. Ignores other generations.
  std::vector<Answer> Put(const PutKey& put);
  // Returns the answer if the key is known; otherwise its Put will.
  std::vector<Answer> Want(uint32_t host, const WantKey& want);

 private:
  KvTable* Of(uint64_t generation);

  KvTable proof_, pairs_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DOCTOR_PROBED_HOSTS_H_
