#include "discovery/known_hosts.h"

#include <algorithm>
#include <optional>

#include "configs/message_text.h"
#include "discovery/host_item.h"
#include "discovery/name_pattern.h"
#include "discovery/ssh_key.h"
#include "discovery/words.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr size_t kMaxSkipped = 20;  // messages; a file in another format would fill the memory
constexpr size_t kHashBytes = 20;   // and as many of salt
constexpr std::string_view kHashed = "|1|";

// ---- names

// "a,b*,!bad"
bool MatchesList(std::string_view list, std::string_view name) {
  std::vector<std::string_view> patterns;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    patterns.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return MatchesPatterns(patterns, name);
}

// "|1|salt|hash"
bool ParseHashed(std::string_view names, KnownHost& entry) {
  if (!names.starts_with(kHashed)) return false;
  names.remove_prefix(kHashed.size());
  size_t bar = names.find('|');
  if (bar == std::string_view::npos) return false;
  std::optional<std::string> salt = DecodeBase64(names.substr(0, bar));
  std::optional<std::string> hash = DecodeBase64(names.substr(bar + 1));
  if (!salt || !hash || salt->size() != kHashBytes || hash->size() != kHashBytes) return false;
  entry.salt = std::move(*salt);
  entry.hash = std::move(*hash);
  return true;
}

bool MatchesName(const KnownHost& entry, std::string_view name) {
  if (entry.hash.empty()) return MatchesList(entry.names, name);
  return HmacSha1(entry.salt, name) == entry.hash;
}

// The names of a host in known_hosts.
struct Lookup {
  std::string name;
  std::string bare;  // the name without the port, where that is another; else ""
};

Lookup LookupOf(std::string_view host, uint16_t port) {
  std::string lower = Lowered(host);
  if (port == 0 || port == kSshPort) return {lower, ""};
  return {Format("[{}]:{}", lower, port), lower};
}

bool MatchesBare(const KnownHost& entry, const Lookup& lookup) {
  return !lookup.bare.empty() && MatchesName(entry, lookup.bare);
}

// ---- lines

std::optional<KnownHostMark> MarkOf(std::string_view word) {
  if (word == "@revoked") return KnownHostMark::kRevoked;
  if (word == "@cert-authority") return KnownHostMark::kAuthority;
  return std::nullopt;
}

// Fills `entry`, or returns why the line is invalid.
std::string ParseLine(std::string_view line, KnownHost& entry) {
  std::string_view names = PopWord(line);
  if (names.starts_with('@')) {
    std::optional<KnownHostMark> mark = MarkOf(names);
    if (!mark) return "has the unknown mark " + Quoted(names);
    entry.mark = *mark;
    names = PopWord(line);
  }
  std::string_view type = PopWord(line);
  std::string_view base64 = PopWord(line);
  if (base64.empty()) return "has no key";
  if (!names.starts_with('|')) {
    entry.names = names;
  } else if (!ParseHashed(names, entry)) {
    return "has a hashed name that cannot be read";
  }
  if (type.find_first_not_of("0123456789") == std::string_view::npos) {
    return "has a key of SSH 1, which nobody uses any more";
  }
  std::optional<std::string> key = DecodeBase64(base64);
  if (!key) return "has a key that is no base64";
  if (KeyTypeOf(*key) != type) return "has a key that is no " + Quoted(type);
  entry.key_type = type;
  entry.key = std::move(*key);
  return "";
}

bool CanBeWritten(std::string_view host) {
  return !host.empty() && host.find_first_of("|#@") != 0 &&
         std::all_of(host.begin(), host.end(), [](char c) {
           return c > ' ' && c < 0x7F && c != ',' && c != '*' && c != '?' && c != '!';
         });
}

HostKeyCheck Verdict(HostKeyVerdict verdict, const KnownHost& entry) {
  return {verdict, entry.file, entry.line, entry.key_type};
}

}  // namespace

void KnownHosts::Add(std::string_view text, const std::string& file) {
  LineReader lines(text);
  while (std::optional<std::string_view> line = lines.Next()) {
    std::string_view trimmed = Trimmed(*line);
    if (trimmed.empty() || trimmed[0] == '#') continue;
    KnownHost entry{.file = file, .line = lines.number()};
    std::string why = ParseLine(trimmed, entry);
    if (why.empty()) {
      entries.push_back(std::move(entry));
    } else if (skipped.size() < kMaxSkipped) {
      skipped.push_back(Format("{}, line {} is left out: it {}", Printable(file, kMaxShownPath),
                               lines.number(), why));
    }
  }
}

KnownHosts LinesOf(const KnownHosts& known, std::string_view host, uint16_t port) {
  Lookup lookup = LookupOf(host, port);
  KnownHosts lines;
  for (const KnownHost& entry : known.entries) {
    if (MatchesName(entry, lookup.name) || MatchesBare(entry, lookup))
      lines.entries.push_back(entry);
  }
  return lines;
}

HostKeyCheck CheckHostKey(const KnownHosts& known, std::string_view host, uint16_t port,
                          std::string_view key) {
  Lookup lookup = LookupOf(host, port);
  const KnownHost* match = nullptr;
  const KnownHost* other = nullptr;
  const KnownHost* authority = nullptr;
  for (const KnownHost& entry : known.entries) {
    bool same_key = entry.key == key;
    bool named = MatchesName(entry, lookup.name);
    if (!named && (entry.mark != KnownHostMark::kAuthority && !same_key)) continue;
    if (!named && !MatchesBare(entry, lookup)) continue;
    switch (entry.mark) {
      case KnownHostMark::kRevoked:
        if (same_key) return Verdict(HostKeyVerdict::kRevoked, entry);
        break;
      case KnownHostMark::kAuthority:
        if (authority == nullptr) authority = &entry;
        break;
      case KnownHostMark::kNone:
        if (same_key && match == nullptr) match = &entry;
        if (!same_key && other == nullptr) other = &entry;
        break;
    }
  }
  if (match != nullptr) return Verdict(HostKeyVerdict::kMatch, *match);
  if (other != nullptr) return Verdict(HostKeyVerdict::kChanged, *other);
  if (authority != nullptr) return Verdict(HostKeyVerdict::kAuthorityOnly, *authority);
  return {};
}

std::vector<std::string> KnownTypes(const KnownHosts& known, std::string_view host, uint16_t port) {
  Lookup lookup = LookupOf(host, port);
  std::vector<std::string> types;
  for (const KnownHost& entry : known.entries) {
    if (entry.mark != KnownHostMark::kNone) continue;
    if (std::find(types.begin(), types.end(), entry.key_type) != types.end()) continue;
    if (MatchesName(entry, lookup.name) || MatchesBare(entry, lookup)) {
      types.push_back(entry.key_type);
    }
  }
  return types;
}

std::string KnownHostsLine(std::string_view host, uint16_t port, std::string_view key) {
  std::string type = KeyTypeOf(key);
  if (type.empty() || !CanBeWritten(host)) return "";
  return LookupOf(host, port).name + " " + type + " " + EncodeBase64(key) + "\n";
}

std::string HashedKnownHostsLine(std::string_view host, uint16_t port, std::string_view key,
                                 std::string_view salt) {
  std::string type = KeyTypeOf(key);
  if (type.empty() || !CanBeWritten(host) || salt.size() != kHashBytes) return "";
  std::string hash = HmacSha1(salt, LookupOf(host, port).name);
  if (hash.size() != kHashBytes) return "";
  return std::string(kHashed) + EncodeBase64(salt) + "|" + EncodeBase64(hash) + " " + type + " " +
         EncodeBase64(key) + "\n";
}

}  // namespace hvd
