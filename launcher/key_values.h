// KeyValues: the entries of one epoch's directory as one process on their way knows them, and who waits for which. Readers
// are numbers: slots of an agent, hosts of a driver. Pure.
#ifndef HVD_LAUNCHER_KEY_VALUES_H_
#define HVD_LAUNCHER_KEY_VALUES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace hvd {

class KeyValues {
 public:
  // Forgets what belongs to another epoch.
  void Begin(uint64_t epoch);
  uint64_t epoch() const { return epoch_; }

  // Returns those who waited for the key; they wait no longer.
  std::set<uint32_t> Put(const std::string& key, std::string value);
  // nullptr: not known yet.
  const std::string* Find(const std::string& key) const;
  // True when nobody waited for the key before.
  bool Await(uint32_t reader, const std::string& key);

 private:
  uint64_t epoch_ = 0;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::set<uint32_t>> waiting_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_KEY_VALUES_H_
