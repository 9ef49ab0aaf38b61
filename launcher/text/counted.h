// "1 rank", "3 ranks".
#ifndef HVD_LAUNCHER_TEXT_COUNTED_H_
#define HVD_LAUNCHER_TEXT_COUNTED_H_

#include <cstddef>
#include <string>

namespace hvd {

inline std::string Counted(size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace hvd

#endif  // HVD_LAUNCHER_TEXT_COUNTED_H_
