// Determines the hosts that a run may use from its settings: -H, --hostfile, --slots-per-host and
// --hosts-per-machine. Pure: system access goes through SelectionFacts.
#ifndef HVD_DISCOVERY_HOST_SELECTION_H_
#define HVD_DISCOVERY_HOST_SELECTION_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "configs/settings.h"
#include "discovery/host_slots.h"
#include "discovery/host_spec.h"
#include "runtime/base/status.h"

namespace hvd {

struct SelectionFacts {
  // The text of a file; the error message follows the file's name: "cannot be opened".
  std::function<Result<std::string>(const std::string& path)> read_file;
  // What else the argument of -H may be, apart from a list of hosts.
  std::function<WordFacts(const std::string& word)> word_facts;
  // The names that are this machine.
  std::function<std::set<std::string>(const std::vector<std::string>& names)> names_of_this_machine;
  std::function<std::string()> host_name;
  std::function<uint32_t()> default_slots;  // of this machine
};

// The hosts of -H or --hostfile as written.
struct HostsAsNamed {
  std::string file;  // the host file; empty: from a list
  std::vector<HostSpec> specs;
};
// Requires one of the two. kInvalidArgument: one sentence. Appends to `notes` as below.
Result<HostsAsNamed> ReadHostsAsNamed(const Settings& settings, const SelectionFacts& facts,
                                      std::vector<std::string>& notes);
Result<std::vector<HostSpec>> ReadHostFile(const std::string& path, const SelectionFacts& facts);

// Slots of a host named without a number. 0: its agent reports them.
uint32_t SlotsPerHost(const Settings& settings, const SelectionFacts& facts, bool remote);

// The hosts in the given order, without duplicates. kInvalidArgument: one sentence. Appends
// messages for the user to `notes`, also before an error.
Result<std::vector<HostSlots>> SelectHosts(const Settings& settings, const SelectionFacts& facts,
                                           std::vector<std::string>& notes);

// Total slots, for a job without -np. kInvalidArgument: one sentence, naming a host whose slots
// only its agent knows.
Result<int> SlotsOfAll(const std::vector<HostSlots>& hosts);

// `-H a:1 b:1 python`: detects a second host that would be mistaken for the command.
Status CheckNoHostInCommand(const Settings& settings, const std::vector<std::string>& command);

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_SELECTION_H_
