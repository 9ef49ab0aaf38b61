// One question about many names, asked of all at once: a name server that answers slowly, or never,
// costs its time once.
#ifndef HVD_DISCOVERY_ASK_ALL_H_
#define HVD_DISCOVERY_ASK_ALL_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

// The names for which `ask` said yes within the limit. It runs in threads of its own, several at a
// time, and perhaps still when this function has returned: it owns what it uses.
std::set<std::string> NamesThat(const std::vector<std::string>& names,
                                std::function<bool(const std::string&)> ask, Duration limit);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ASK_ALL_H_
