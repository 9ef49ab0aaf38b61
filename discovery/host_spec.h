// Host lists as people write them: the text of -H and of a host file, in the spellings of Horovod,
// Open MPI, MPICH and DeepSpeed (README.md has the grammar). Pure.
#ifndef HVD_DISCOVERY_HOST_SPEC_H_
#define HVD_DISCOVERY_HOST_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/host_item.h"
#include "runtime/base/status.h"

namespace hvd {

// A name never begins with "-" and has only letters, digits, ".", "-" and "_", or it is an IPv6
// address; a user's never begins with "-" either. Both are safe as words of a command line.
struct HostSpec {
  std::string name;
  std::optional<uint32_t> slots;      // not said: the host's own number
  std::string user;                   // "": not said
  uint16_t port = 0;                  // 0: not said
  std::optional<uint32_t> max_slots;  // never below slots

  bool operator==(const HostSpec&) const = default;
};

// "a:4,b,bob@c:2,[::1]:2222:2,node[01-16]:8". A name that comes more than once and without a number
// has one slot each time.
Result<std::vector<HostSpec>> ParseHostList(std::string_view text);

// One such host or range a line, then "slots=4", "max_slots=8", "user=bob", "port=2222"; other
// words of the form key=value are left alone. "#" begins a comment. `file` is for the message.
Result<std::vector<HostSpec>> ParseHostFile(std::string_view text, const std::string& file);

// Appends the hosts of one such line, none for a line without text. kInvalidArgument: one sentence
// that does not name the line.
Status AddHostLine(std::string_view line, std::vector<HostSpec>& specs);

// The argument of -H can be the path of a host file instead of a list of hosts. A word with "/" is;
// a word alone that is a file and no name of this machine is, too.
struct WordFacts {
  bool is_file = false;
  bool is_this_machine = false;
};
bool NamesHostFile(std::string_view hosts, const WordFacts& facts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_SPEC_H_
