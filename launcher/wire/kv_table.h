// KvTable: the entries of one generation's directory as one process on their way knows them, and
// who waits for which. Readers are numbers: slots of an agent, hosts of a driver. Pure.
//
// Memory: an entry stays until the next generation. Where strangers to this process name keys,
// Admits bounds how many.
#ifndef HVD_LAUNCHER_WIRE_KV_TABLE_H_
#define HVD_LAUNCHER_WIRE_KV_TABLE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace hvd {

class KvTable {
 public:
  // Forgets what belongs to another generation.
  void Begin(uint64_t generation);
  uint64_t generation() const { return generation_; }

  // Returns the readers that waited for the key; they wait no longer.
  std::set<uint32_t> Put(const std::string& key, std::string value);
  // nullptr: not known yet.
  const std::string* Find(const std::string& key) const;
  // Somebody waits for the key.
  bool Awaited(const std::string& key) const { return waiting_.count(key) > 0; }
  // True when nobody waited for the key before.
  bool Await(uint32_t reader, const std::string& key);
  // May `speaker` put or await this key? Each may bring up to `most` keys into a generation; those
  // that others named before count for nothing. True counts.
  bool Admits(uint32_t speaker, const std::string& key, uint64_t most);

 private:
  uint64_t generation_ = 0;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::set<uint32_t>> waiting_;
  std::map<uint32_t, uint64_t> brought_;  // keys by speaker
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_KV_TABLE_H_
