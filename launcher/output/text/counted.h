// "1 rank", "3 ranks".
#ifndef HVD_LAUNCHER_OUTPUT_TEXT_COUNTED_H_
#define HVD_LAUNCHER_OUTPUT_TEXT_COUNTED_H_

#include <cstddef>
#include <string>

#include "runtime/base/text/format.h"

namespace hvd {

inline std::string Counted(size_t count, const char* one, const char* many) {
  return Format("{} {}", count, count == 1 ? one : many);
}

}  // namespace hvd

#endif  // HVD_LAUNCHER_OUTPUT_TEXT_COUNTED_H_
