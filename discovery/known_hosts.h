// OpenSSH's known_hosts: lists, patterns, "!", hashed names, "[host]:port", @revoked and
// @cert-authority. Pure: the caller reads and writes the files. Bad lines are skipped and reported.
#ifndef HVD_DISCOVERY_KNOWN_HOSTS_H_
#define HVD_DISCOVERY_KNOWN_HOSTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

enum class KnownHostMark { kNone, kRevoked, kAuthority };

// One line.
struct KnownHost {
  KnownHostMark mark = KnownHostMark::kNone;
  std::string names;  // as written; "" when hashed
  std::string salt;   // of a hashed name, else ""
  std::string hash;
  std::string key_type;  // "ssh-ed25519"
  std::string key;       // the decoded blob
  std::string file;
  size_t line = 0;

  bool operator==(const KnownHost&) const = default;
};

struct KnownHosts {
  std::vector<KnownHost> entries;
  std::vector<std::string> skipped;  // a sentence per invalid line, with file and line number

  // Appends the lines of one file. `file` is for messages.
  void Add(std::string_view text, const std::string& file);
};

// The entries that match this host, for repeated queries: matching hashed names is slow. `host` and
// `port` as in CheckHostKey.
KnownHosts LinesOf(const KnownHosts& known, std::string_view host, uint16_t port);

enum class HostKeyVerdict {
  kMatch,          // this very key is known for this host
  kUnknown,        // no entry for this host
  kChanged,        // the host has only other keys (of any type): never accept it as new
  kRevoked,        // this key is marked @revoked for this host
  kAuthorityOnly,  // only @cert-authority lines match this host: a plain key is not enough
};

struct HostKeyCheck {
  HostKeyVerdict verdict = HostKeyVerdict::kUnknown;
  // The line that decided; "" and 0 for kUnknown.
  std::string file;
  size_t line = 0;
  std::string known_type;  // the key type of that line

  bool operator==(const HostKeyCheck&) const = default;
};

// `host` is compared without regard to case; port 0 means that known_hosts has the bare name
// (HostKeyAlias). A host at another port than 22 is looked up as "[host]:port", then under its bare
// name, where a key can match or be revoked but never counts as changed. `key` is the blob that the
// host presented.
HostKeyCheck CheckHostKey(const KnownHosts& known, std::string_view host, uint16_t port,
                          std::string_view key);

// The distinct types of this host's keys ("ssh-ed25519"), in the order of the lines, without
// revoked keys and authorities: a client offers these first.
std::vector<std::string> KnownTypes(const KnownHosts& known, std::string_view host, uint16_t port);

// The line, with its newline, that makes this key known: "[host]:2222 ssh-ed25519 AAAA...\n". The
// key's type is in `key`. Not hashed; "" if `host` or `key` cannot be represented in a line.
std::string KnownHostsLine(std::string_view host, uint16_t port, std::string_view key);
// The same with the name hashed (HashKnownHosts yes). `salt` is 20 random bytes.
std::string HashedKnownHostsLine(std::string_view host, uint16_t port, std::string_view key,
                                 std::string_view salt);

}  // namespace hvd

#endif  // HVD_DISCOVERY_KNOWN_HOSTS_H_
