// Host names with ranges, as schedulers write them: "node[01-16]", "n[1-3,7]-ib[0-1]". Pure.
#ifndef HVD_DISCOVERY_HOST_RANGE_H_
#define HVD_DISCOVERY_HOST_RANGE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace hvd {

inline constexpr size_t kMaxHosts = 100'000;

// Every name that `pattern` stands for, the last range running fastest; a pattern without brackets
// stands for itself. The zeros of a range's first number are kept ("[08-11]" is 08, 09, 10, 11).
// More than `limit` names are an error, found before they are made. Text outside of the brackets is
// not looked at.
Result<std::vector<std::string>> ExpandHostRange(std::string_view pattern,
                                                 size_t limit = kMaxHosts);

// The part of `list` before its first comma that is in no brackets; it and the comma are taken off.
// `last` says whether no comma followed.
std::string_view TakeListItem(std::string_view& list, bool& last);

}  // namespace hvd

#endif  // HVD_DISCOVERY_HOST_RANGE_H_
