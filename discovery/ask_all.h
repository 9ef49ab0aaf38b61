// Runs a slow query for many names in parallel, so that the delay of a slow or dead name server
// counts only once.
#ifndef HVD_DISCOVERY_ASK_ALL_H_
#define HVD_DISCOVERY_ASK_ALL_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace hvd {

// The names for which `ask` returned true within the limit. `ask` runs concurrently on several
// threads, perhaps beyond the return of this function, so it must own what it uses.
std::set<std::string> NamesThat(const std::vector<std::string>& names,
                                std::function<bool(const std::string&)> ask, Duration limit);

}  // namespace hvd

#endif  // HVD_DISCOVERY_ASK_ALL_H_
