// KvTable: one process's cached entries of one generation's directory, and which readers wait for
// which key. Readers are numbers: slots in an agent, hosts in the driver. Pure.
//
// Memory: entries stay until the next generation. Admits bounds the number of keys that other
// processes create.
#ifndef HVD_LAUNCHER_WIRE_KV_TABLE_H_
#define HVD_LAUNCHER_WIRE_KV_TABLE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace hvd {

class KvTable {
 public:
  // Starts the generation; drops everything of other generations.
  void Begin(uint64_t generation);
  uint64_t generation() const { return generation_; }

  // Stores the value; removes and returns the readers that waited for the key.
  std::set<uint32_t> Put(const std::string& key, std::string value);
  // nullptr: unknown.
  const std::string* Find(const std::string& key) const;
  // At least one reader waits for the key.
  bool Awaited(const std::string& key) const { return waiting_.count(key) > 0; }
  // True if it is the first reader that waits for the key.
  bool Await(uint32_t reader, const std::string& key);
  // Whether `speaker` may put or await this key. Each may add up to `most` new keys per generation;
  // a call that returns true counts.
  bool Admits(uint32_t speaker, const std::string& key, uint64_t most);

 private:
  uint64_t generation_ = 0;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::set<uint32_t>> waiting_;
  std::map<uint32_t, uint64_t> brought_;  // keys by speaker
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_KV_TABLE_H_
