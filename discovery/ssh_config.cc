#include "discovery/ssh_config.h"

#include <algorithm>
#include <map>
#include <utility>

#include "configs/message_text.h"
#include "discovery/words.h"
#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

constexpr std::string_view kNone = "none";

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  return ParseWhole<T>(text);
}

std::optional<bool> ParseSwitch(std::string_view text) {
  if (text == "yes" || text == "true") return true;
  if (text == "no" || text == "false") return false;
  return std::nullopt;
}

// PubkeyAuthentication has two additional values that mean yes.
std::optional<bool> ParsePubkey(std::string_view text) {
  return text == "unbound" || text == "host-bound" ? true : ParseSwitch(text);
}

std::optional<StrictHostKeys> ParseStrict(std::string_view text) {
  if (text == "ask") return StrictHostKeys::kAsk;
  if (text == "accept-new") return StrictHostKeys::kAcceptNew;
  if (text == "off") return StrictHostKeys::kNo;
  std::optional<bool> strict = ParseSwitch(text);
  if (!strict) return std::nullopt;
  return *strict ? StrictHostKeys::kYes : StrictHostKeys::kNo;
}

std::optional<SshAddressFamily> ParseFamily(std::string_view text) {
  if (text == "any") return SshAddressFamily::kAny;
  if (text == "inet") return SshAddressFamily::kInet;
  if (text == "inet6") return SshAddressFamily::kInet6;
  return std::nullopt;
}

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

// ssh prints a list of paths without quotes: a word that does not begin a path continues the
// previous path.
std::vector<std::string> SplitPaths(std::string_view text) {
  std::vector<std::string> paths;
  for (std::string_view word : Words(text)) {
    bool begins = paths.empty() || word[0] == '/' || word[0] == '~' || word == kNone;
    if (begins) {
      paths.emplace_back(word);
    } else {
      paths.back() += " " + std::string(word);
    }
  }
  return paths;
}

// The output of `ssh -G`, by keys.
class SshOptions {
 public:
  explicit SshOptions(std::string_view output) {
    LineReader lines(output);
    while (std::optional<std::string_view> line = lines.Next()) {
      std::string_view rest = *line;
      std::string key = Lowered(PopWord(rest));
      if (!key.empty()) values_[key].push_back(Trimmed(rest));
    }
  }

  // "" when nothing was said.
  std::string Name(const char* key) const {
    auto found = values_.find(key);
    return found == values_.end() ? "" : std::string(found->second.front());
  }
  // "" also for "none".
  std::string First(const char* key) const {
    std::string value = Name(key);
    return value == kNone ? "" : value;
  }
  std::vector<std::string_view> All(const char* key) const {
    auto found = values_.find(key);
    return found == values_.end() ? std::vector<std::string_view>() : found->second;
  }

 private:
  std::map<std::string, std::vector<std::string_view>> values_;
};

// ---- tokens

// Expands "~", "%h" and "${NAME}" once host, port and user are known.
class Expander {
 public:
  Expander(const SshConfig& config, const SshLocal& local) : config_(config), local_(local) {}

  Result<std::string> Path(std::string_view text) const {
    std::string expanded;
    if (text.starts_with('~')) {
      size_t slash = std::min(text.find('/'), text.size());
      std::string_view user = text.substr(1, slash - 1);
      if (!user.empty() && user != local_.user) {
        return InvalidArgument(Quoted(text, kMaxShownPath) + " begins with the home of " +
                               Quoted(user) + ", which is not looked up; write its path");
      }
      expanded = local_.home;
      text.remove_prefix(slash);
    }
    Result<std::string> rest = Tokens(text, true);
    if (!rest.ok()) return rest;
    return expanded + *rest;
  }

  // What is not a token of ssh is left to a shell.
  Result<std::string> CommandLine(std::string_view text) const { return Tokens(text, false); }

  std::optional<std::string> Variable(std::string_view name) const {
    return local_.variable ? local_.variable(std::string(name)) : std::nullopt;
  }

 private:
  Result<std::string> Tokens(std::string_view text, bool variables) const {
    std::string expanded;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '%' && i + 1 < text.size()) {
        std::optional<std::string> value = Token(text[++i]);
        if (!value) {
          return InvalidArgument(Quoted(text, kMaxShownPath) + " has the token " +
                                 Quoted(text.substr(i - 1, 2)) + ", which is not known here");
        }
        expanded += *value;
      } else if (variables && text.substr(i).starts_with("${")) {
        size_t end = text.find('}', i);
        std::string_view name = text.substr(i + 2, end == text.npos ? text.npos : end - i - 2);
        std::optional<std::string> value = end == text.npos ? std::nullopt : Variable(name);
        if (!value) {
          return InvalidArgument(Quoted(text, kMaxShownPath) + " names the variable " +
                                 Quoted(name) + ", which is not set");
        }
        expanded += *value;
        i = end;
      } else {
        expanded += text[i];
      }
    }
    return expanded;
  }

  std::optional<std::string> Token(char c) const {
    switch (c) {
      case '%': return "%";
      case 'd': return local_.home;
      case 'h': return config_.hostname;
      case 'i': return std::to_string(local_.user_id);
      case 'k': return config_.host_key_alias.empty() ? config_.host : config_.host_key_alias;
      case 'L': return local_.host_name.substr(0, local_.host_name.find('.'));
      case 'l': return local_.host_name;
      case 'n': return config_.host;
      case 'p': return std::to_string(config_.port);
      case 'r': return config_.user;
      case 'u': return local_.user;
      default: return std::nullopt;
    }
  }

  const SshConfig& config_;
  const SshLocal& local_;
};

// ---- the parts of the configuration

// Sets `place` if the key was given and understood; notes in `ignored` if it was not understood.
template <typename T>
void Set(const SshOptions& options, const char* key, std::optional<T> (*parse)(std::string_view),
         T& place, std::vector<std::string>& ignored) {
  std::string text = options.First(key);
  if (text.empty()) return;
  if (std::optional<T> value = parse(text)) {
    place = *value;
  } else {
    ignored.push_back(std::string(key) + " is " + Quoted(text) + ", which is not understood");
  }
}

void SetPaths(const std::vector<std::string>& texts, const Expander& expander,
              std::vector<std::string>& places, std::vector<std::string>& ignored) {
  for (const std::string& text : texts) {
    if (text.empty() || text == kNone) continue;
    Result<std::string> path = expander.Path(text);
    if (path.ok()) {
      places.push_back(std::move(*path));
    } else {
      ignored.push_back(path.status().message());
    }
  }
}

std::vector<std::string> Strings(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

Status SetTarget(const SshOptions& options, const SshLocal& local, SshConfig& config) {
  config.hostname = options.Name("hostname");
  if (config.hostname.empty()) {
    return InvalidArgument("what `ssh -G` printed names no host; try it in a terminal");
  }
  config.host = options.Name("host");
  if (config.host.empty()) config.host = config.hostname;
  config.user = options.Name("user");
  if (config.user.empty()) config.user = local.user;
  if (std::string text = options.First("port"); !text.empty()) {
    std::optional<uint16_t> port = ParseNumber<uint16_t>(text);
    if (!port || *port == 0) {
      return InvalidArgument("what `ssh -G " + Printable(config.host) + "` printed has the port " +
                             Quoted(text) + ", which is none");
    }
    config.port = *port;
  }
  Set(options, "addressfamily", ParseFamily, config.address_family, config.ignored);
  config.bind_address = options.First("bindaddress");
  config.bind_interface = options.First("bindinterface");
  if (std::string text = options.First("connecttimeout"); !text.empty()) {
    config.connect_timeout_s = ParseNumber<uint32_t>(text);
  }
  Set(options, "connectionattempts", ParseNumber<uint32_t>, config.connection_attempts,
      config.ignored);
  Set(options, "serveraliveinterval", ParseNumber<uint32_t>, config.server_alive_interval_s,
      config.ignored);
  Set(options, "serveralivecountmax", ParseNumber<uint32_t>, config.server_alive_count_max,
      config.ignored);
  return Status::Ok();
}

void SetTrust(const SshOptions& options, const Expander& expander, SshConfig& config) {
  auto& ignored = config.ignored;
  Set(options, "stricthostkeychecking", ParseStrict, config.strict_host_keys, ignored);
  config.host_key_algorithms = SplitAtCommas(options.First("hostkeyalgorithms"));
  SetPaths(SplitPaths(options.First("userknownhostsfile")), expander, config.user_known_hosts_files,
           ignored);
  SetPaths(SplitPaths(options.First("globalknownhostsfile")), expander,
           config.global_known_hosts_files, ignored);
  config.known_hosts_command = options.First("knownhostscommand");
  config.revoked_host_keys = options.First("revokedhostkeys");
  Result<std::string> revoked = expander.Path(config.revoked_host_keys);
  if (revoked.ok()) config.revoked_host_keys = std::move(*revoked);
  Set(options, "hashknownhosts", ParseSwitch, config.hash_known_hosts, ignored);
  Set(options, "nohostauthenticationforlocalhost", ParseSwitch,
      config.no_host_authentication_for_localhost, ignored);
}

// ssh has already resolved "+", "-", "^" and patterns.
void SetProtection(const SshOptions& options, SshConfig& config) {
  config.key_exchange_algorithms = SplitAtCommas(options.First("kexalgorithms"));
  config.ciphers = SplitAtCommas(options.First("ciphers"));
  config.macs = SplitAtCommas(options.First("macs"));
}

// "none", "SSH_AUTH_SOCK", "$NAME" or a path.
void SetAgent(const SshOptions& options, const Expander& expander, SshConfig& config) {
  std::vector<std::string_view> all = options.All("identityagent");
  if (all.empty() || all[0] == "SSH_AUTH_SOCK") return;
  std::string_view text = all[0];
  config.identity_agent = "";
  if (text == kNone) return;
  if (text.starts_with('$') && !text.starts_with("${")) {
    config.identity_agent = expander.Variable(text.substr(1)).value_or("");
    return;
  }
  std::vector<std::string> path;
  SetPaths({std::string(text)}, expander, path, config.ignored);
  if (!path.empty()) config.identity_agent = path[0];
}

void SetLogin(const SshOptions& options, const Expander& expander, SshConfig& config) {
  auto& ignored = config.ignored;
  Set(options, "pubkeyauthentication", ParsePubkey, config.pubkey_authentication, ignored);
  Set(options, "gssapiauthentication", ParseSwitch, config.gssapi_authentication, ignored);
  Set(options, "hostbasedauthentication", ParseSwitch, config.hostbased_authentication, ignored);
  config.preferred_authentications = SplitAtCommas(options.First("preferredauthentications"));
  config.pubkey_accepted_algorithms = SplitAtCommas(options.First("pubkeyacceptedalgorithms"));
  Set(options, "identitiesonly", ParseSwitch, config.identities_only, ignored);
  SetPaths(Strings(options.All("identityfile")), expander, config.identity_files, ignored);
  SetPaths(Strings(options.All("certificatefile")), expander, config.certificate_files, ignored);
  SetAgent(options, expander, config);
  config.pkcs11_provider = options.First("pkcs11provider");
}

// A proxy that is not understood must not become a direct connection.
Status SetProxy(const SshOptions& options, const Expander& expander, SshConfig& config) {
  config.proxy_jump = options.First("proxyjump");
  Set(options, "proxyusefdpass", ParseSwitch, config.proxy_use_fdpass, config.ignored);
  config.control_path = options.First("controlpath");
  Result<std::string> command = expander.CommandLine(options.First("proxycommand"));
  if (!command.ok()) {
    return InvalidArgument("ProxyCommand for " + Printable(config.host) + ": " +
                           command.status().message());
  }
  config.proxy_command = std::move(*command);
  return Status::Ok();
}

}  // namespace

Result<SshConfig> ParseSshConfig(std::string_view output, const SshLocal& local) {
  SshOptions options(output);
  SshConfig config;
  HVD_RETURN_IF_ERROR(SetTarget(options, local, config));
  config.host_key_alias = options.First("hostkeyalias");
  Expander expander(config, local);
  HVD_RETURN_IF_ERROR(SetProxy(options, expander, config));
  SetTrust(options, expander, config);
  SetProtection(options, config);
  SetLogin(options, expander, config);
  config.remote_command = options.First("remotecommand");
  config.set_env = Strings(options.All("setenv"));
  return config;
}

KnownHostsName NameInKnownHosts(const SshConfig& config) {
  if (!config.host_key_alias.empty()) return {config.host_key_alias, 0};
  return {config.hostname, config.port};
}

}  // namespace hvd
