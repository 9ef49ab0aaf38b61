// Expands host names with ranges: "node[01-16]", "n[1-3,7]-ib[0-1]". Pure.
#ifndef HVD_DISCOVERY_HOST_RANGE_H_
#define HVD_DISCOVERY_HOST_RANGE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

inline constexpr size_t kMaxHosts = 100'000;

// All names of `pattern`, the last range varying fastest; a pattern without brackets is returned as
// is. Keeps leading zeros of a range's first number ("[08-11]" is 08, 09, 10, 11). More than
// `limit` names are an error, detected before expansion. Text outside of brackets is not validated.
Result<std::vector<std::string>> ExpandHostRange(std::string_view pattern,
                                                 size_t limit = kMaxHosts);

// Removes and returns the part of `list` before its first comma outside of brackets. `last`: no
// comma followed.
std::string_view PopListItem(std::string_view& list, bool& last);

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_RANGE_H_
