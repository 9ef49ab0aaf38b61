// A host's name that leads to no address: whether it may yet, and when to ask again. A pod or a
// cloud machine gets its name seconds after hvdrun was told of it, and a name server says "no such
// name" until then. Pure.
#ifndef HVD_LAUNCHER_CHANNELS_UNRESOLVED_NAME_H_
#define HVD_LAUNCHER_CHANNELS_UNRESOLVED_NAME_H_

#include <string_view>

#include "runtime/base/clock.h"

namespace hvd {

// False for what no name server will ever know: a label that is empty or longer than 63 bytes, more
// than 253 bytes in all, a last label of digits only (a misspelt address), anything with ":" or a
// blank, and names under .invalid.
bool MayResolveLater(std::string_view name);

// The pause after so many attempts that failed: 0.1 s, 0.2, 0.4, then 0.8 s each.
Duration PauseBeforeResolving(int tries);

}  // namespace hvd

#endif  // HVD_LAUNCHER_CHANNELS_UNRESOLVED_NAME_H_
