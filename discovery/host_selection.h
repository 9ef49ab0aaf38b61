// Which hosts a run may use, by its settings: -H, --hostfile, --slots-per-host and
// --hosts-per-machine. Pure: questions about this machine and its files go through SelectionFacts.
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
  // The text of a file; an error's message follows the file's name: "cannot be opened".
  std::function<Result<std::string>(const std::string& path)> read_file;
  // Tells what else the argument of -H is, besides a list of hosts.
  std::function<WordFacts(const std::string& word)> word_facts;
  // Those of the names that lead to this machine.
  std::function<std::set<std::string>(const std::vector<std::string>& names)> names_of_this_machine;
  std::function<std::string()> host_name;
  std::function<uint32_t()> default_slots;  // of this machine
};

// The hosts that -H or --hostfile names, as they stand there.
struct HostsAsNamed {
  std::string file;  // the host file; empty: they are a list
  std::vector<HostSpec> specs;
};
// One of the two is given. kInvalidArgument: one sentence. Appends to `notes` as below.
Result<HostsAsNamed> ReadHostsAsNamed(const Settings& settings, const SelectionFacts& facts,
                                      std::vector<std::string>& notes);
Result<std::vector<HostSpec>> ReadHostFile(const std::string& path, const SelectionFacts& facts);

// Of a host that is named without a number. 0: the agent on that host reports what it has.
uint32_t SlotsPerHost(const Settings& settings, const SelectionFacts& facts, bool remote);

// The hosts in the order in which they were named, none twice. kInvalidArgument: one sentence.
// Appends sentences for the user to `notes`, also before an error.
Result<std::vector<HostSlots>> SelectHosts(const Settings& settings, const SelectionFacts& facts,
                                           std::vector<std::string>& notes);

// The slots of all hosts, for a job without -np. kInvalidArgument: one sentence, which names a host
// whose slots only its agent knows.
Result<int> SlotsOfAll(const std::vector<HostSlots>& hosts);

// `-H a:1 b:1 python`: without this check the second host would be taken for the command.
Status CheckNoHostInCommand(const Settings& settings, const std::vector<std::string>& command);

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_SELECTION_H_
