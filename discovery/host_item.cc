#include "discovery/host_item.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "configs/message_text.h"
#include "discovery/host_range.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr size_t kMaxUser = 64;
constexpr uint16_t kFirstPlainPort = 1024;  // "[host]:4" says a port, but its writer may mean slots

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsNameCharacter(char c) { return IsLetterOrDigit(c) || c == '.' || c == '-' || c == '_'; }

bool IsUserCharacter(char c) { return IsNameCharacter(c) || c == '+' || c == '@'; }

// The first character of a host name: neither of an option nor of a hidden file.
bool IsFirstCharacter(char c) { return IsLetterOrDigit(c) || c == '_'; }

bool IsName(std::string_view name) {
  return !name.empty() && IsFirstCharacter(name[0]) &&
         std::all_of(name.begin(), name.end(), IsNameCharacter);
}

// "::1", "fe80::1%eth0".
bool IsIpv6(std::string_view text) {
  size_t percent = text.find('%');
  if (percent != std::string_view::npos && !IsName(text.substr(percent + 1))) return false;
  text = text.substr(0, percent);
  in6_addr address;
  return text.find('\0') == std::string_view::npos &&
         ::inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

Result<uint32_t> ParseNumber(std::string_view text, uint32_t most, const std::string& what,
                             std::string_view whole, const std::string& example) {
  const auto number = ParseWhole<uint32_t>(text);
  if (number && *number >= 1 && *number <= most) return *number;
  return InvalidArgument(Format("in {} the {} {} is not a number from 1 to {}; try {}",
                                Quoted(whole), what, Quoted(text), most, example));
}

// The error that `whole` is not a host, with the probable intention.
Status NoHost(std::string_view whole) {
  auto because = [&](const std::string& hint) {
    return InvalidArgument(Quoted(whole) + " is no host: " + hint);
  };
  if (whole.empty()) return because("an entry of the list is empty; try localhost:2");
  if (whole[0] == '-') return because("it begins like an option; try a name, as in localhost:2");
  if (whole[0] == '^' || whole[0] == '+') {
    return because("hosts of an allocation cannot be excluded or counted here; write their names");
  }
  if (whole.find("://") != std::string_view::npos) {
    return because("it looks like a URL; a port is said as in [host]:2222, a user as in bob@host");
  }
  if (whole.find_first_of(" \t") != std::string_view::npos) {
    return because("hosts are separated by commas, as in a:2,b:2");
  }
  if (std::count(whole.begin(), whole.end(), ':') > 1) {
    return because("try name:slots, [name]:port:slots, or [address]:port:slots for IPv6");
  }
  return because("try a name and a number of slots, as in localhost:2");
}

// The position of the bracket that closes the one at the start of `text`.
size_t ClosingBracket(std::string_view text) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Where the name ends and the numbers begin.
struct Cut {
  std::string_view host;
  std::optional<std::string_view> port;
  std::optional<std::string_view> slots;
};

// "[host]", "[host]:port", "[host]:port:slots", "[host]::slots".
Cut CutAfterBracket(std::string_view text, size_t close) {
  Cut cut{text.substr(1, close - 1), {}, {}};
  std::string_view tail = text.substr(close + 1);
  if (tail.empty()) return cut;
  tail.remove_prefix(1);
  size_t colon = tail.find(':');
  if (colon != std::string_view::npos) cut.slots = tail.substr(colon + 1);
  if (colon != 0) cut.port = tail.substr(0, colon);
  return cut;
}

// "host", "host:slots", an address of IPv6.
Cut CutAtColon(std::string_view text) {
  size_t colon = text.find(':');
  if (colon == std::string_view::npos || IsIpv6(text)) return {text, {}, {}};
  return {text.substr(0, colon), {}, text.substr(colon + 1)};
}

Result<Cut> CutItem(std::string_view text, std::string_view whole) {
  if (!text.starts_with('[')) {
    Cut cut = CutAtColon(text);
    if (cut.slots && cut.slots->find(':') != std::string_view::npos) return NoHost(whole);
    return cut;
  }
  size_t close = ClosingBracket(text);
  if (close == std::string_view::npos) return NoHost(whole);
  bool is_range = close + 1 < text.size() && text[close + 1] != ':';  // "[1-3]node"
  return is_range ? CutAtColon(text) : CutAfterBracket(text, close);
}

Status PortOrSlots(uint16_t port, std::string_view host, std::string_view whole) {
  std::string number = std::to_string(port);
  std::string head = "[" + Printable(host) + "]:";
  return InvalidArgument(Quoted(whole) + " can mean port " + number + " or " + number +
                         " slots; write " + head + ":" + number + " for the slots or " + head +
                         number + ":1 for the port and one slot");
}

Result<std::vector<std::string>> NamesOf(std::string_view host, std::string_view whole,
                                         size_t limit) {
  if (IsIpv6(host)) return std::vector<std::string>{std::string(host)};
  Result<std::vector<std::string>> names = ExpandHostRange(host, limit);
  if (!names.ok()) return names;
  if (!std::all_of(names->begin(), names->end(), IsName)) return NoHost(whole);
  return names;
}

}  // namespace

Result<uint32_t> ParseSlots(std::string_view text, std::string_view whole) {
  return ParseNumber(text, kMaxSlots, "number of slots", whole, "localhost:2");
}

Result<uint16_t> ParsePort(std::string_view text, std::string_view whole) {
  Result<uint32_t> port = ParseNumber(text, UINT16_MAX, "port", whole, "[localhost]:2222");
  if (!port.ok()) return port.status();
  return static_cast<uint16_t>(*port);
}

Status CheckUser(std::string_view user, std::string_view whole) {
  if (!user.empty() && user.size() <= kMaxUser && IsFirstCharacter(user[0]) &&
      std::all_of(user.begin(), user.end(), IsUserCharacter)) {
    return Status::Ok();
  }
  return InvalidArgument("in " + Quoted(whole) + " the user " + Quoted(user) +
                         " cannot be passed on; try bob@host, or User in your ssh configuration");
}

Result<HostItem> ParseHostItem(std::string_view text, bool slots_said, size_t limit) {
  HostItem item;
  std::string_view rest = text;
  if (size_t at = text.rfind('@'); at != std::string_view::npos) {
    item.user = text.substr(0, at);
    rest.remove_prefix(at + 1);
    if (text.find("://") != std::string_view::npos) return NoHost(text);
    if (Status status = CheckUser(item.user, text); !status.ok()) return status;
  }
  Result<Cut> cut = CutItem(rest, text);
  if (!cut.ok()) return cut.status();
  Result<std::vector<std::string>> names = NamesOf(cut->host, text, limit);
  if (!names.ok()) return names.status();
  item.names = std::move(*names);
  if (cut->slots) {
    Result<uint32_t> slots = ParseSlots(*cut->slots, text);
    if (!slots.ok()) return slots.status();
    item.slots = *slots;
  }
  if (!cut->port) return item;
  Result<uint16_t> port = ParsePort(*cut->port, text);
  if (!port.ok()) return port.status();
  item.port = *port;
  bool plain = *port >= kFirstPlainPort || *port == kSshPort;
  if (!plain && !item.slots && !slots_said) return PortOrSlots(*port, cut->host, text);
  return item;
}

}  // namespace hvd
