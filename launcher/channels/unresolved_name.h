// Host names that do not resolve: whether they may later, and when to retry. The name of a pod or
// cloud machine may appear seconds after hvdrun learns of it; until then name servers answer "no
// such name". Pure.
#ifndef HVD_LAUNCHER_CHANNELS_UNRESOLVED_NAME_H_
#define HVD_LAUNCHER_CHANNELS_UNRESOLVED_NAME_H_

#include <string_view>

#include "runtime/base/clock.h"

namespace hvd {

// False for names that can never resolve: a label that is empty or longer than 63 bytes, more than
// 253 bytes in all, a last label of digits only (a misspelt address), anything with ":" or a blank,
// and names under .invalid.
bool MayResolveLater(std::string_view name);

// The pause after `tries` failed attempts: 0.1 s, 0.2, 0.4, then 0.8 s each.
Duration PauseBeforeResolving(int tries);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_UNRESOLVED_NAME_H_
