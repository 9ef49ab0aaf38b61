// Host lists of batch systems: a name per slot, or a name and a number. Pure.
#ifndef HVD_DISCOVERY_ALLOCATIONS_MACHINE_LIST_H_
#define HVD_DISCOVERY_ALLOCATIONS_MACHINE_LIST_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/host_spec.h"
#include "runtime/base/status.h"

namespace hvd {

class MachineList {
 public:
  // `source` is for messages: "the file /x of LSB_DJOB_HOSTFILE".
  explicit MachineList(std::string source) : source_(std::move(source)) {}

  // Adds slots of a host; entries of the same name add up. kInvalidArgument: one sentence.
  Status Add(std::string_view name, uint32_t slots);
  // "a a b": a name per slot.
  Status AddWords(std::string_view words);
  // The same over several lines.
  Status AddLines(std::string_view text);
  // "a 2 b 1": a name and its slots.
  Status AddPairs(std::string_view words);
  // kInvalidArgument: `text` of the source is not a host with its slots.
  Status BadListError(std::string_view text) const;

  // In order of first appearance. kInvalidArgument if empty.
  Result<std::vector<HostSpec>> Finish();

 private:
  std::string source_;
  std::vector<HostSpec> hosts_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace hvd

#endif  // HVD_DISCOVERY_ALLOCATIONS_MACHINE_LIST_H_
