// OpenSSH's host name patterns in known_hosts and its configuration. Pure.
#ifndef HVD_DISCOVERY_NAME_PATTERN_H_
#define HVD_DISCOVERY_NAME_PATTERN_H_

#include <span>
#include <string_view>

namespace hvd {

// "*" is any text, "?" any character. `name` is in lower case.
bool MatchesPattern(std::string_view pattern, std::string_view name);

// One pattern must match, and none that begins with "!" may.
bool MatchesPatterns(std::span<const std::string_view> patterns, std::string_view name);

}  // namespace hvd

#endif  // HVD_DISCOVERY_NAME_PATTERN_H_
