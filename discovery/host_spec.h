// Parses host lists: the text of -H and of host files, in the syntax of Horovod, Open MPI, MPICH
// and DeepSpeed (README.md has the grammar). Pure.
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
// address; a user's never begins with "-" either. Both are safe as command-line arguments.
struct HostSpec {
  std::string name;
  std::optional<uint32_t> slots;      // not given: the host's own number
  std::string user;                   // "": not given
  uint16_t port = 0;                  // 0: not given
  std::optional<uint32_t> max_slots;  // never below slots

  bool operator==(const HostSpec&) const = default;
};

// "a:4,b,bob@c:2,[::1]:2222:2,node[01-16]:8". A repeated name without a number has one slot per
// occurrence.
Result<std::vector<HostSpec>> ParseHostList(std::string_view text);

// One such host or range per line, then "slots=4", "max_slots=8", "user=bob", "port=2222"; other
// key=value words are ignored. "#" begins a comment. `file` is for error messages.
Result<std::vector<HostSpec>> ParseHostFile(std::string_view text, const std::string& file);

// Appends the hosts of one such line; nothing for an empty line. kInvalidArgument: one sentence
// without the line number.
Status AddHostLine(std::string_view line, std::vector<HostSpec>& specs);

// The argument of -H may be the path of a host file: if it contains "/", or is a single word that
// is a file and not a name of this machine.
struct WordFacts {
  bool is_file = false;
  bool is_this_machine = false;
};
bool NamesHostFile(std::string_view hosts, const WordFacts& facts);

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_SPEC_H_
