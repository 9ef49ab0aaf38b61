#include "launcher/agent/workers/held_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <vector>

#include "launcher/process/proc_file.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    words.push_back(line.substr(0, line.find(' ')));
    line.remove_prefix(words.back().size());
  }
}

// The address as in the tables: 32-bit groups in host byte order. Empty if it is not numeric.
std::string TableText(const std::string& address) {
  in6_addr bytes{};
  const bool is_v4 = ::inet_pton(AF_INET, address.c_str(), &bytes) == 1;
  if (!is_v4 && ::inet_pton(AF_INET6, address.c_str(), &bytes) != 1) return "";
  std::string text;
  for (size_t i = 0; i < (is_v4 ? 1 : 4); ++i) {
    text += Format("{:08X}", bytes.s6_addr32[i]);
  }
  return text;
}

// Compares addresses of both tables: in the IPv6 table, IPv4 addresses have a prefix.
bool IsThere(std::string_view at, std::string_view wanted) {
  constexpr std::string_view kMapped = "0000000000000000FFFF0000";
  return at == wanted || (at.starts_with(kMapped) && at.substr(kMapped.size()) == wanted);
}

bool IsAnyAddress(std::string_view text) { return text.find_first_not_of('0') == text.npos; }

struct TablePlace {
  std::string_view address;
  uint32_t port = 0;
};

struct TableLine {
  TablePlace local, remote;
  std::string_view state;
  uid_t user = 0;
};

std::optional<TablePlace> ParsePlace(std::string_view word) {
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = ParseWhole<uint32_t>(word.substr(colon + 1), 16);
  if (!port) return std::nullopt;
  return TablePlace{word.substr(0, colon), *port};
}

// "  sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt   uid ..."
std::vector<TableLine> LinesOf(std::string_view table) {
  constexpr size_t kLocal = 1, kRemote = 2, kState = 3, kUid = 7;
  std::vector<TableLine> lines;
  while (!table.empty()) {
    const size_t end = std::min(table.find('\n'), table.size());
    const std::vector<std::string_view> words = WordsOf(table.substr(0, end));
    table.remove_prefix(std::min(end + 1, table.size()));
    if (words.size() <= kUid) continue;
    const std::optional<TablePlace> local = ParsePlace(words[kLocal]);
    const std::optional<TablePlace> remote = ParsePlace(words[kRemote]);
    const auto user = ParseWhole<uid_t>(words[kUid]);
    if (local && remote && user) lines.push_back({*local, *remote, words[kState], *user});
  }
  return lines;
}

}  // namespace

HeldPort::HeldPort(bool everywhere) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(everywhere ? INADDR_ANY : INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (socket_.valid() && ::bind(socket_.get(), generic, length) == 0 &&
      ::getsockname(socket_.get(), generic, &length) == 0) {
    port_ = ntohs(address.sin_port);
  }
}

void HeldPort::LetServersListen() {
  int yes = 1;
  if (port_ != 0) ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

std::optional<uid_t> ListenerIn(std::string_view table, const std::string& address, uint32_t port) {
  constexpr std::string_view kListening = "0A";
  const std::string wanted = TableText(address);
  for (const TableLine& line : LinesOf(table)) {
    if (line.state != kListening || line.local.port != port) continue;
    if (IsThere(line.local.address, wanted) || IsAnyAddress(line.local.address)) return line.user;
  }
  return std::nullopt;
}

bool ConnectionIn(std::string_view table, const std::string& address, uint32_t port, uid_t user) {
  constexpr std::string_view kEstablished = "01", kCloseWait = "08";
  const std::string wanted = TableText(address);
  return std::ranges::any_of(LinesOf(table), [&](const TableLine& line) {
    const bool open = line.state == kEstablished || line.state == kCloseWait;
    if (!open || line.remote.port != port || line.user != user) return false;
    return wanted.empty() || IsThere(line.remote.address, wanted) ||
           line.remote.address == line.local.address;
  });
}

std::optional<uid_t> ListenerAt(const std::string& address, uint32_t port) {
  for (const char* name : {"net/tcp", "net/tcp6"}) {
    if (std::optional<uid_t> uid = ListenerIn(ReadProcFile(name), address, port)) return uid;
  }
  return std::nullopt;
}

bool ConnectedTo(const std::string& address, uint32_t port, uid_t user) {
  return std::ranges::any_of(std::array{"net/tcp", "net/tcp6"}, [&](const char* name) {
    return ConnectionIn(ReadProcFile(name), address, port, user);
  });
}

}  // namespace hvd
